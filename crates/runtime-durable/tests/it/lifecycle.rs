//! Shutdown, manual cancellation, panics, retries, cleanup and concurrency limits.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_conformance::faults::{Fault, FaultStore};
use helix_agents_core::agent::Agent;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::message::Message;
use helix_agents_core::session::{RunStatus, load};
use helix_agents_core::store::StateStore as _;
use helix_agents_core::tool::{Tool, ToolContext};
use helix_agents_runtime_durable::DurableRuntime;
use helix_agents_runtime_durable::RuntimeBuilder as _;
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};
use serde_json::json;

use crate::support::{Count, TestApp, Word, act, acts_once, counting, registry, scratch, teller};

fn in_session(id: &str) -> ExecuteOptions {
    ExecuteOptions::default().session(SessionId::from(id))
}

#[tokio::test]
async fn shutdown_stops_runs_and_another_runtime_recovers_them_at_once() {
    let (store, _folder) = scratch().await;
    let (app, gate) = (TestApp::new(), Gate::new());
    let agent = teller().build().unwrap();
    let builder = |llm| {
        let builder = app.builder().store(store.clone()).registry(registry(&agent)).llm(llm);
        builder.lease(Duration::from_secs(60)).grace(Duration::from_millis(50))
    };
    let llm = ScriptedLlm::new([Reply::text("done").at_gate(&gate)]);
    let first = builder(llm).connect().await.unwrap();
    let mut handles = Vec::new();
    for id in ["a", "b"] {
        handles.push(first.execute(agent.erased(), "go".into(), in_session(id)).await.unwrap());
    }
    gate.reached_by(2).await;
    within(first.shutdown()).await;
    for handle in &handles {
        assert_eq!(within(handle.result()).await.unwrap_err().code(), ErrorCode::Closed);
    }
    let refused = first.execute(agent.erased(), "go".into(), ExecuteOptions::default()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::Closed);
    app.wait_for_statuses(&[("teller__a", "PENDING"), ("teller__b", "PENDING")]).await;

    let second = builder(ScriptedLlm::new([Reply::text("done")])).connect().await.unwrap();
    let recovered = second.recover().await.unwrap();
    assert_eq!(recovered.len(), 2);
    for handle in recovered {
        assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    }
    let mut workflows = app.workflows().await;
    workflows.sort();
    assert_eq!(workflows[0], ("teller__a".to_owned(), "CANCELLED".to_owned()));
    assert_eq!(workflows[2], ("teller__b".to_owned(), "CANCELLED".to_owned()));
    within(second.shutdown()).await;
}

#[tokio::test]
async fn a_runtime_that_is_idle_shuts_down_at_once_and_twice() {
    let (store, _folder) = scratch().await;
    let builder = TestApp::new();
    let runtime = builder.builder().store(store).llm(acts_once()).connect().await.unwrap();
    within(runtime.shutdown()).await;
    within(runtime.shutdown()).await;
}

/// A model that opens a gate when its call is dropped.
#[derive(Debug)]
struct Watched {
    model: ScriptedLlm,
    dropped: Gate,
}

/// Opens a gate when dropped.
struct OpenOnDrop(Gate);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}

#[async_trait]
impl LlmAdapter for Watched {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let _guard = OpenOnDrop(self.dropped.clone());
        self.model.generate_step(request, sink).await
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        self.model.check(config)
    }
}

#[tokio::test]
async fn a_manually_cancelled_workflow_stops_immediately_and_its_run_is_taken_over() {
    let (store, _folder) = scratch().await;
    let (app, gate, dropped) = (TestApp::new(), Gate::new(), Gate::new());
    let agent = teller().build().unwrap();
    let builder = || {
        let builder = app.builder().store(store.clone()).registry(registry(&agent));
        builder.lease(Duration::from_secs(60))
    };
    let model = ScriptedLlm::new([Reply::text("never").at_gate(&gate)]);
    let llm = Watched { model, dropped: dropped.clone() };
    let first = builder().llm(llm).connect().await.unwrap();
    let handle = first.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    gate.reached().await;

    let client = app.client().await;
    client.cancel(&format!("{}__teller__s", app.app)).await.unwrap();
    client.close().await;
    within(dropped.pass()).await;
    assert_eq!(within(handle.result()).await.unwrap_err().code(), ErrorCode::Cancelled);
    // Handles of other processes report it, too.
    let second = builder().llm(ScriptedLlm::new([Reply::text("done")])).connect().await.unwrap();
    let seen = second.handle(handle.session()).await.unwrap();
    assert_eq!(within(seen.result()).await.unwrap_err().code(), ErrorCode::Cancelled);

    let swept = second.sweep().await.unwrap();
    assert_eq!(swept.len(), 1);
    assert_eq!(within(swept[0].result()).await.unwrap().status, RunStatus::Completed);
    app.wait_for_statuses(&[("teller__s", "CANCELLED"), ("teller__s__resume-1", "SUCCESS")]).await;
    within(first.shutdown()).await;
    within(second.shutdown()).await;
}

/// A model that panics.
#[derive(Debug)]
struct Panics;

#[async_trait]
impl LlmAdapter for Panics {
    async fn generate_step(&self, _: LlmRequest<'_>, _: &dyn LlmSink) -> Result<LlmResponse> {
        panic!("the secret of the model")
    }

    fn check(&self, _: &LlmConfig) -> Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_panic_of_the_model_fails_the_run_and_its_message_is_not_stored() {
    let (store, _folder) = scratch().await;
    let app = TestApp::new();
    let agent = teller().build().unwrap();
    let builder = || app.builder().store(store.clone()).registry(registry(&agent));
    let first = builder().llm(Panics).connect().await.unwrap();
    let handle = first.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    let failed = within(handle.result()).await.unwrap();
    let code = failed.error.as_ref().map(|error| &*error.code);
    assert_eq!((failed.status, code), (RunStatus::Failed, Some("code_panicked")));
    app.wait_for_statuses(&[("teller__s", "SUCCESS")]).await;
    assert!(!app.dump().await.contains("secret"));
    let second = builder().llm(ScriptedLlm::new([Reply::text("done")])).connect().await.unwrap();
    let seen = second.handle(handle.session()).await.unwrap();
    assert_eq!(within(seen.result()).await.unwrap().status, RunStatus::Failed);
    within(first.shutdown()).await;
    within(second.shutdown()).await;
}

/// The step itself retries the store, because retries below it are disabled.
#[tokio::test]
async fn a_work_item_that_fails_because_of_the_store_is_retried() {
    let (store, _folder) = scratch().await;
    let (app, count) = (TestApp::new(), Count::default());
    let agent = teller().tool(counting(&count)).build().unwrap();
    let llm = acts_once();
    let faults = FaultStore::new(Arc::new(store.clone()))
        .with_fault("\"done\"", Fault::Refuse(ErrorCode::StoreBusy))
        .with_fault("\"done\"", Fault::Refuse(ErrorCode::StoreUnavailable));
    let builder = app.builder().state_store(Arc::new(faults)).stream_manager(Arc::new(store));
    let builder = builder.store_retry_timeout(Duration::ZERO).llm(llm.clone());
    let runtime = builder.connect().await.unwrap();
    let handle = runtime.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!((llm.calls(), count.get()), (4, 1), "only two replies were lost");
    app.wait_for_statuses(&[("teller__s", "SUCCESS")]).await;
    within(runtime.shutdown()).await;
}

#[tokio::test]
async fn a_deleted_session_can_be_created_again() {
    let (store, _folder) = scratch().await;
    let (app, count) = (TestApp::new(), Count::default());
    let agent = teller().tool(counting(&count)).build().unwrap();
    let runtime = app.builder().store(store.clone()).llm(acts_once()).connect().await.unwrap();
    for times in 1..3 {
        let handle = runtime.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
        assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
        assert_eq!(count.get(), times);
        app.wait_for_statuses(&[("teller__s", "SUCCESS")]).await;
        store.delete(handle.session()).await.unwrap();
    }
    within(runtime.shutdown()).await;
}

#[tokio::test]
async fn ended_workflows_are_removed_after_the_retention_time() {
    let (store, _folder) = scratch().await;
    let app = TestApp::new();
    let agent = teller().build().unwrap();
    let builder = app.builder().store(store).llm(ScriptedLlm::new([Reply::text("done")]));
    let runtime = builder.keep_history(Duration::from_millis(1)).connect().await.unwrap();
    let handle = runtime.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    within(handle.result()).await.unwrap();
    app.wait_for_statuses(&[]).await;
    assert_eq!(app.dump().await, "");
    // The log still contains the run.
    let again = runtime.handle(handle.session()).await.unwrap();
    assert_eq!(within(again.result()).await.unwrap().status, RunStatus::Completed);
    within(runtime.shutdown()).await;
}

#[tokio::test]
async fn the_tables_contain_ids_and_no_conversation_text() {
    let (store, _folder) = scratch().await;
    let (app, count) = (TestApp::new(), Count::default());
    let agent = teller().tool(counting(&count)).build().unwrap();
    let calls = [("act", json!({ "word": "secret" })), ("act", json!({ "word": "secret" }))];
    let llm = ScriptedLlm::new([Reply::calls(calls), Reply::text("secret")]);
    let runtime = app.builder().store(store).llm(llm).connect().await.unwrap();
    let options = in_session("s");
    let handle = runtime.execute(agent.erased(), "secret".into(), options).await.unwrap();
    within(handle.result()).await.unwrap();
    app.wait_for_statuses(&[("teller__s", "SUCCESS")]).await;
    let steps = app.steps("teller__s").await;
    assert_eq!(steps, ["open", "model/1", "call/1.0", "call/1.1", "settle/1", "model/2"]);
    let dump = app.dump().await;
    assert!(dump.contains("teller__s") && !dump.contains("secret"), "{dump}");
    within(runtime.shutdown()).await;
}

#[tokio::test]
async fn runs_beyond_the_limit_wait_for_a_permit_and_keep_their_leases() {
    let (store, _folder) = scratch().await;
    let (app, gate) = (TestApp::new(), Gate::new());
    let agent = teller().build().unwrap();
    let llm = ScriptedLlm::new([Reply::text("done").at_gate(&gate)]);
    let builder = app.builder().store(store.clone()).llm(llm).registry(registry(&agent));
    let runtime = builder.lease(Duration::from_millis(600)).max_runs(1).connect().await.unwrap();
    let first = runtime.execute(agent.erased(), "go".into(), in_session("a")).await.unwrap();
    gate.reached().await;
    let second = runtime.execute(agent.erased(), "go".into(), in_session("b")).await.unwrap();
    wait_past_lease(&store, second.session()).await;
    assert_eq!(gate.arrived(), 1);
    assert!(runtime.recover().await.unwrap().is_empty());
    gate.open();
    for handle in [first, second] {
        assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    }
    within(runtime.shutdown()).await;
}

/// Waits until a session's current lease would have expired without renewal.
async fn wait_past_lease(store: &SqliteStore, session: &SessionId) {
    let lease = async || store.head(session).await.unwrap().unwrap();
    let first = lease().await.lease_until.unwrap();
    loop {
        let head = lease().await;
        assert!(head.is_leased(), "the lease of {session} was not renewed");
        if head.read_at > first {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_run_that_waits_for_its_child_releases_its_permit() {
    let (store, _folder) = scratch().await;
    let app = TestApp::new();
    let helper = teller_of("helper").description("Helps.").output::<bool>().build().unwrap();
    let boss = teller_of("boss").sub_agent(&helper).build().unwrap();
    let asks = Reply::tool_call("subagent__helper", json!({ "message": "help" }));
    let asks = ScriptedLlm::new([asks, Reply::text("done")]);
    let helps = ScriptedLlm::new([Reply::finish(json!(true))]);
    let llm = RoutingScriptedLlm::new().agent("boss", asks).agent("helper", helps);
    let runtime = app.builder().store(store).llm(llm).max_runs(1).connect().await.unwrap();
    let handle = runtime.execute(boss.erased(), "go".into(), in_session("s")).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    within(runtime.shutdown()).await;
}

/// Returns a tool that executes another agent on this runtime and waits for it.
fn delegating(runtime: &Arc<OnceLock<Weak<DurableRuntime>>>, to: &Agent) -> Tool {
    let (runtime, to) = (Arc::clone(runtime), to.clone());
    Tool::function("act", "Acts.", move |_: Word, _: ToolContext| {
        let (runtime, to) = (Arc::clone(&runtime), to.clone());
        async move {
            let runtime = runtime.get().and_then(Weak::upgrade).unwrap();
            let run = runtime.execute(to.erased(), "go".into(), in_session("inner")).await?;
            Ok(run.result().await?.status.as_str())
        }
    })
}

#[tokio::test]
async fn a_run_that_a_tool_executes_needs_no_permit() {
    let (store, _folder) = scratch().await;
    let (app, place) = (TestApp::new(), Arc::new(OnceLock::new()));
    let helper = teller_of("helper").build().unwrap();
    let boss = teller_of("boss").tool(delegating(&place, &helper)).build().unwrap();
    let asks = ScriptedLlm::new([act(), Reply::text("done")]);
    let helps = ScriptedLlm::new([Reply::text("helped")]);
    let llm = RoutingScriptedLlm::new().agent("boss", asks).agent("helper", helps);
    let runtime = app.builder().store(store.clone()).llm(llm).max_runs(1).connect().await;
    let runtime = Arc::new(runtime.unwrap());
    place.set(Arc::downgrade(&runtime)).unwrap();
    let handle = runtime.execute(boss.erased(), "go".into(), in_session("s")).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let fold = load(&store, &"s".into()).await.unwrap();
    let answered = fold.transcript().iter().any(|message| match &**message {
        Message::Tool(result) => format!("{result:?}").contains("completed"),
        _ => false,
    });
    assert!(answered, "{:?}", fold.transcript());
    within(runtime.shutdown()).await;
}

fn teller_of(name: &str) -> helix_agents_core::agent::AgentBuilder {
    helix_agents_core::agent::Agent::builder(name).system_prompt("You tell.").model("scripted")
}

#[tokio::test]
async fn a_run_whose_rows_were_deleted_stops_at_its_next_step_and_is_released() {
    let (store, _folder) = scratch().await;
    let (app, gate, count) = (TestApp::new(), Gate::new(), Count::default());
    let agent = teller().tool(counting(&count)).build().unwrap();
    let builder = || {
        let builder = app.builder().store(store.clone()).registry(registry(&agent));
        builder.lease(Duration::from_secs(60))
    };
    let model = ScriptedLlm::new([act().at_gate(&gate), Reply::text("never")]);
    let first = builder().llm(model).connect().await.unwrap();
    let handle = first.execute(agent.erased(), "go".into(), in_session("s")).await.unwrap();
    gate.reached().await;
    let client = app.client().await;
    client.delete(&format!("{}__teller__s", app.app)).await.unwrap();
    client.close().await;
    gate.open();
    within(handle.result()).await.unwrap_err();

    let second = builder().llm(acts_once()).connect().await.unwrap();
    let recovered = second.recover().await.unwrap();
    assert_eq!(within(recovered[0].result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(count.get(), 1);
    app.wait_for_statuses(&[("teller__s__resume-1", "SUCCESS")]).await;
    within(first.shutdown()).await;
    within(second.shutdown()).await;
}
