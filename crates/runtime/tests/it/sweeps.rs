//! What a sweep takes up, and what it leaves to an engine that goes on by itself.

use helix_agents_core::executor::{AgentExecutor as _, RunHandle};
use helix_agents_core::session::RunStatus;
use helix_agents_testkit::gate::Gate;

use crate::by_hand::{ByHand, S, Scene, teller, tells};

/// What a sweep takes up of a run that lies.
async fn swept(scene: &Scene) -> Vec<RunHandle> {
    let (_, run) = scene.begin(teller()).await;
    scene.abandon(&run).await;
    scene.runtime.sweep().await.unwrap()
}

#[tokio::test]
async fn a_run_that_its_engine_goes_on_with_is_left_alone() {
    let asked = Gate::opened();
    let engine = ByHand { goes_on: Some(asked.clone()), ..ByHand::default() };
    let scene = Scene::new(engine, tells(), [teller()]);
    assert!(swept(&scene).await.is_empty());
    assert_eq!((asked.arrived(), scene.begun().len()), (1, 1));
    assert_eq!(scene.runs(&S.into()).await, [RunStatus::Running]);
}

#[tokio::test]
async fn a_run_that_its_engine_does_not_go_on_with_is_taken_over() {
    let scene = Scene::new(ByHand::default(), tells(), [teller()]);
    let swept = swept(&scene).await;
    assert_eq!(swept.len(), 1);
    assert_eq!(swept[0].run(), &scene.begun_as(1).await.run);
    assert_eq!(scene.runs(&S.into()).await, [RunStatus::Superseded, RunStatus::Running]);
}
