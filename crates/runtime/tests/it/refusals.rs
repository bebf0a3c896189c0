//! What an engine whose workers are elsewhere cannot honour, and is refused before a run begins.

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

use crate::by_hand::{ByHand, S, Scene, asks, boss, helper, teller, tells};

/// Counts the answers of turns.
#[derive(Debug, Clone, Default)]
struct Counter(Arc<AtomicUsize>);

#[async_trait]
impl AgentHooks for Counter {
    async fn on_agent_complete(&self, _: &HookContext, _: Option<&Json>) -> HookResult {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// An engine that has others carry out what was begun here.
fn workers() -> ByHand {
    ByHand { has_workers: true, ..ByHand::default() }
}

fn child() -> SessionId {
    SessionId::of_call(&S.into(), &"1.0".into())
}

/// A boss whose run lies, and whose helper's does.
async fn abandoned(engine: ByHand) -> Scene {
    let scene = Scene::new(engine, asks(), [boss()]);
    let (_, parent) = scene.begin(boss()).await;
    scene.up_to_calls(&parent).await;
    for run in scene.begun() {
        scene.abandon(&run).await;
    }
    scene
}

/// That somebody who goes on with a session is refused for the hooks that he brings.
async fn hooks_are_refused(scene: &Scene, session: &SessionId, agent: AnyAgent) {
    let options = ResumeOptions::default().hooks(Counter::default());
    let refused = scene.runtime.resume(agent, session, options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConfigInvalid);
    assert!(refused.message().contains("give them to the agent"), "{refused}");
    assert_eq!(scene.runs(session).await, [RunStatus::Running], "nothing was begun");
}

#[tokio::test]
async fn a_run_with_hooks_of_its_own_is_not_begun_where_workers_would_not_know_them() {
    let scene = Scene::new(workers(), tells(), [teller()]);
    let options = ExecuteOptions::default().session(S).hooks(Counter::default());
    let refused = scene.runtime.execute(teller(), "go".into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConfigInvalid);
    let told =
        "the by-hand runtime may be carried out by any worker, which does not know the hooks";
    assert!(refused.message().contains(told), "{refused}");
    let nothing = scene.runtime.handle(&S.into()).await.unwrap_err();
    assert_eq!(nothing.code(), ErrorCode::SessionNotFound);
}

#[tokio::test]
async fn a_session_is_not_gone_on_with_by_hooks_that_workers_would_not_know() {
    let scene = abandoned(workers()).await;
    hooks_are_refused(&scene, &S.into(), boss()).await;
}

#[tokio::test]
async fn the_session_of_a_child_is_not_gone_on_with_by_hooks_that_workers_would_not_know() {
    let scene = abandoned(workers()).await;
    hooks_are_refused(&scene, &child(), helper()).await;
}

#[tokio::test]
async fn an_agent_that_workers_would_not_find_is_refused() {
    let scene = Scene::new(workers(), tells(), [teller()]);
    let options = ExecuteOptions::default().session(S);
    let refused = scene.runtime.execute(boss(), "go".into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AgentNotFound);
    assert!(refused.message().contains("the `registry` of the runtime"), "{refused}");

    let (_, run) = scene.begin(teller()).await;
    scene.abandon(&run).await;
    let options = ResumeOptions::default();
    let refused = scene.runtime.resume(boss(), &S.into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::AgentNotFound);
    assert_eq!(scene.begun(), [run]);
}

/// Its parent's definition says which it is.
#[tokio::test]
async fn the_agent_of_a_child_need_not_be_registered() {
    let scene = abandoned(workers()).await;
    scene.runtime.resume(helper(), &child(), ResumeOptions::default()).await.unwrap();
    scene.drive(&scene.begun_as(2).await).await;
    assert_eq!(scene.runs(&child()).await, [RunStatus::Superseded, RunStatus::Completed]);
}

/// Neither the agent nor the hooks are anywhere else.
#[tokio::test]
async fn an_engine_that_keeps_to_its_process_has_agents_and_hooks_that_only_this_run_has() {
    let counter = Counter::default();
    let scene = Scene::new(ByHand::default(), tells(), []);
    let options = ExecuteOptions::default().session(S).hooks(counter.clone());
    scene.runtime.execute(teller(), "go".into(), options).await.unwrap();
    scene.drive(&scene.begun_as(0).await).await;
    assert_eq!(scene.runs(&S.into()).await, [RunStatus::Completed]);
    assert_eq!(counter.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn an_engine_that_keeps_to_its_process_has_the_hooks_of_a_childs_run() {
    let counter = Counter::default();
    let scene = abandoned(ByHand::default()).await;
    let options = ResumeOptions::default().hooks(counter.clone());
    scene.runtime.resume(helper(), &child(), options).await.unwrap();
    scene.drive(&scene.begun_as(2).await).await;
    assert_eq!(counter.0.load(Ordering::Relaxed), 1);
}
