//! The runs that a sweep resumes, and those that it leaves to an engine that recovers runs by itself.

use helix_agents_core::executor::{AgentExecutor as _, RunHandle};
use helix_agents_core::session::RunStatus;
use helix_agents_test::Gate;

use crate::by_hand::{ByHand, S, Scene, teller, teller_model};

/// Returns the handles of a sweep after a run was abandoned.
async fn swept(scene: &Scene) -> Vec<RunHandle> {
    let (_, run) = scene.start(teller()).await;
    scene.abandon(&run).await;
    scene.runtime.sweep().await.unwrap()
}

#[tokio::test]
async fn a_run_that_its_engine_recovers_is_skipped() {
    let gate = Gate::opened();
    let engine = ByHand { recovers: Some(gate.clone()), ..ByHand::default() };
    let scene = Scene::new(engine, teller_model(), [teller()]);
    assert!(swept(&scene).await.is_empty());
    assert_eq!((gate.arrived(), scene.started().len()), (1, 1));
    assert_eq!(scene.runs(&S.into()).await, [RunStatus::Running]);
}

#[tokio::test]
async fn a_run_that_its_engine_does_not_recover_is_taken_over() {
    let scene = Scene::new(ByHand::default(), teller_model(), [teller()]);
    let swept = swept(&scene).await;
    assert_eq!(swept.len(), 1);
    assert_eq!(swept[0].run(), &scene.started_as(1).await.run);
    assert_eq!(scene.runs(&S.into()).await, [RunStatus::Superseded, RunStatus::Running]);
}
