//! Options that an engine with remote workers cannot support. They are refused before a run starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use helix_agents_core::agent::AnyAgent;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions};
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult};
use helix_agents_core::id::SessionId;
use helix_agents_core::json::Json;
use helix_agents_core::session::RunStatus;

use crate::by_hand::{ByHand, S, Scene, boss, boss_model, helper, teller, teller_model};

/// Hooks that count completed turns.
#[derive(Debug, Clone, Default)]
struct Counter(Arc<AtomicUsize>);

#[async_trait]
impl AgentHooks for Counter {
    async fn on_agent_complete(&self, _: &HookContext, _: Option<&Json>) -> HookResult {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns an engine with remote workers.
fn workers() -> ByHand {
    ByHand { has_workers: true, ..ByHand::default() }
}

fn child() -> SessionId {
    SessionId::of_call(&S.into(), &"1.0".into())
}

/// Returns a scene with abandoned runs of a parent and its child.
async fn abandoned(engine: ByHand) -> Scene {
    let scene = Scene::new(engine, boss_model(), [boss()]);
    let (_, parent) = scene.start(boss()).await;
    scene.up_to_calls(&parent).await;
    for run in scene.started() {
        scene.abandon(&run).await;
    }
    scene
}

/// Asserts that resuming a session with additional hooks is refused.
async fn hooks_are_refused(scene: &Scene, session: &SessionId, agent: AnyAgent) {
    let options = ResumeOptions::default().hooks(Counter::default());
    let refused = scene.runtime.resume(agent, session, options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConfigInvalid);
    assert!(refused.message().contains("give them to the agent"), "{refused}");
    assert_eq!(scene.runs(session).await, [RunStatus::Running], "no run was started");
}

#[tokio::test]
async fn a_run_with_own_hooks_is_refused_if_workers_are_remote() {
    let scene = Scene::new(workers(), teller_model(), [teller()]);
    let options = ExecuteOptions::default().session(S).hooks(Counter::default());
    let refused = scene.runtime.execute(teller(), "go".into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConfigInvalid);
    let expected =
        "the by-hand runtime may be executed by any worker, which does not know the hooks";
    assert!(refused.message().contains(expected), "{refused}");
    let nothing = scene.runtime.handle(&S.into()).await.unwrap_err();
    assert_eq!(nothing.code(), ErrorCode::SessionNotFound);
}

#[tokio::test]
async fn resuming_a_session_with_own_hooks_is_refused_if_workers_are_remote() {
    let scene = abandoned(workers()).await;
    hooks_are_refused(&scene, &S.into(), boss()).await;
}

#[tokio::test]
async fn resuming_a_child_with_own_hooks_is_refused_if_workers_are_remote() {
    let scene = abandoned(workers()).await;
    hooks_are_refused(&scene, &child(), helper()).await;
}

#[tokio::test]
async fn an_unregistered_agent_is_refused_if_workers_are_remote() {
    let scene = Scene::new(workers(), teller_model(), [teller()]);
    let options = ExecuteOptions::default().session(S);
    let refused = scene.runtime.execute(boss(), "go".into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AgentNotFound);
    assert!(refused.message().contains("the `registry` of the runtime"), "{refused}");

    let (_, run) = scene.start(teller()).await;
    scene.abandon(&run).await;
    let options = ResumeOptions::default();
    let refused = scene.runtime.resume(boss(), &S.into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AgentNotFound);
    assert_eq!(scene.started(), [run]);
}

/// The parent's agent definition contains it.
#[tokio::test]
async fn the_agent_of_a_child_need_not_be_registered() {
    let scene = abandoned(workers()).await;
    scene.runtime.resume(helper(), &child(), ResumeOptions::default()).await.unwrap();
    scene.drive(&scene.started_as(2).await).await;
    assert_eq!(scene.runs(&child()).await, [RunStatus::Superseded, RunStatus::Completed]);
}

/// The agent and the hooks exist only in this process.
#[tokio::test]
async fn an_in_process_engine_supports_agents_and_hooks_of_a_single_run() {
    let counter = Counter::default();
    let scene = Scene::new(ByHand::default(), teller_model(), []);
    let options = ExecuteOptions::default().session(S).hooks(counter.clone());
    scene.runtime.execute(teller(), "go".into(), options).await.unwrap();
    scene.drive(&scene.started_as(0).await).await;
    assert_eq!(scene.runs(&S.into()).await, [RunStatus::Completed]);
    assert_eq!(counter.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_in_process_engine_supports_hooks_of_a_child_run() {
    let counter = Counter::default();
    let scene = abandoned(ByHand::default()).await;
    let options = ResumeOptions::default().hooks(counter.clone());
    scene.runtime.resume(helper(), &child(), options).await.unwrap();
    scene.drive(&scene.started_as(2).await).await;
    assert_eq!(counter.0.load(Ordering::Relaxed), 1);
}
