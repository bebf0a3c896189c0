//! Scenarios for agents with a model adapter of their own, such as remote agents.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::message::Message;
use helix_agents_core::session::RunStatus;
use helix_agents_core::step::{StepResult, StopReason};
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::Tool;
use helix_agents_core::usage::Usage;
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};

use super::support::{
    S, Word, asks, check_stream, child, completes, end, fold_of, helper, report, resume, run,
    start_run, status, teller, word,
};
use super::{RuntimeHarness, World};

/// An adapter whose work continues in the background until it is stopped. The first call waits for an interrupt; the
/// second one ends the turn.
#[derive(Debug, Clone)]
struct BackgroundAdapter {
    started: Gate,
    aborts: Arc<Mutex<Vec<String>>>,
}

impl BackgroundAdapter {
    fn new() -> Self {
        Self { started: Gate::opened(), aborts: Arc::default() }
    }

    /// Waits for the first abort, and returns all.
    async fn aborts(&self) -> Vec<String> {
        let received = async {
            loop {
                let aborts = self.aborts.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if !aborts.is_empty() {
                    return aborts;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        within(received).await
    }
}

#[async_trait]
impl LlmAdapter for BackgroundAdapter {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let is_paused =
            matches!(request.messages.last().map(|last| &**last), Some(Message::Assistant(_)));
        let (content, stop_reason) = if is_paused {
            ("Done.", StopReason::EndTurn)
        } else {
            let arguments = "{}".to_owned();
            let (call, tool) = ("background:1".into(), "dig".into());
            sink.chunk(ChunkKind::ToolStart { call, tool, arguments, client: false });
            self.started.pass().await;
            request.interrupt.cancelled().await;
            ("Digging.", StopReason::Pause)
        };
        sink.text_delta(content);
        let result = StepResult::Text {
            content: content.to_owned(),
            thinking: None,
            should_stop: is_paused,
            stop_reason: Some(stop_reason),
        };
        Ok(LlmResponse::new(result, Usage::default()))
    }

    fn check(&self, _: &LlmConfig) -> Result<()> {
        Ok(())
    }

    async fn abort(
        &self,
        session: &SessionId,
        created_at: Timestamp,
        reason: Option<&str>,
    ) -> Result<()> {
        assert!(created_at.0 > 0);
        let abort = format!("{session}: {}", reason.unwrap_or("no reason"));
        self.aborts.lock().unwrap_or_else(PoisonError::into_inner).push(abort);
        Ok(())
    }
}

fn worker(adapter: impl LlmAdapter) -> Agent {
    teller().adapter(adapter).build().unwrap()
}

/// Model calls of an agent use its own adapter and not that of the runtime, also in a sub-agent.
pub async fn an_agent_with_an_adapter_does_not_use_that_of_the_runtime(
    harness: &impl RuntimeHarness,
) {
    let own = ScriptedLlm::new([report()]);
    let helper = helper("helper").adapter(own.clone()).build().unwrap();
    let agent = teller().sub_agent(&helper).build().unwrap();
    let llm = ScriptedLlm::new([asks(&["helper"]), Reply::text("Found gold.")]);
    let executor = harness.boot(World::new(llm.clone()).registered(&agent)).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    assert_eq!((own.calls(), llm.calls()), (1, 2));
}

/// An interrupt reaches a call in progress, which returns early. The session continues with another call.
pub async fn an_interrupt_reaches_an_adapter(harness: &impl RuntimeHarness) {
    let adapter = BackgroundAdapter::new();
    let agent = worker(adapter.clone());
    let executor = harness.boot(World::new(ScriptedLlm::new([])).registered(&agent)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    adapter.started.reached().await;
    handle.interrupt(None).await.unwrap();
    assert_eq!(end(&handle).await.status, RunStatus::Interrupted);
    check_stream(
        &handle,
        &expect![[r#"
            run_started
            tool_start background:1 dig {}
            text Digging.
            checkpoint
            run_interrupted None
        "#]],
    )
    .await;
    let resumed = resume(&*executor, &agent).await.unwrap();
    completes(&resumed).await;
    check_stream(
        &resumed,
        &expect![[r#"
            text Done.
            checkpoint
            output "Done."
            run_ended completed
        "#]],
    )
    .await;
}

/// An abort of a run in progress reaches the adapter of its agent, after its call was cancelled.
pub async fn an_abort_reaches_an_adapter(harness: &impl RuntimeHarness) {
    let adapter = BackgroundAdapter::new();
    let agent = worker(adapter.clone());
    let executor = harness.boot(World::new(ScriptedLlm::new([])).registered(&agent)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    adapter.started.reached().await;
    handle.abort("enough".to_owned()).await.unwrap();
    assert_eq!(end(&handle).await.status, RunStatus::Aborted);
    assert_eq!(adapter.aborts().await[0], format!("{S}: enough"));
}

/// An abort of a root reaches the adapters of its sub-agents.
pub async fn an_abort_reaches_the_adapter_of_a_sub_agent(harness: &impl RuntimeHarness) {
    let adapter = BackgroundAdapter::new();
    let helper = helper("helper").adapter(adapter.clone()).build().unwrap();
    let agent = teller().sub_agent(&helper).build().unwrap();
    let llm = ScriptedLlm::new([asks(&["helper"])]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    adapter.started.reached().await;
    handle.abort("enough".to_owned()).await.unwrap();
    assert_eq!(end(&handle).await.status, RunStatus::Aborted);
    let helper = child("1.0");
    // The parent may abort the child without a reason.
    let aborts = adapter.aborts().await;
    assert!(aborts[0].starts_with(&format!("{helper}: ")), "{aborts:?}");
    assert_eq!(status(&fold_of(harness, &helper).await), RunStatus::Aborted);
}

/// An abort of a session that waits for an answer reaches the adapter of its agent.
pub async fn an_abort_of_a_waiting_session_reaches_the_adapter(harness: &impl RuntimeHarness) {
    #[derive(Debug)]
    struct Asks(ScriptedLlm, BackgroundAdapter);

    #[async_trait]
    impl LlmAdapter for Asks {
        async fn generate_step(
            &self,
            request: LlmRequest<'_>,
            sink: &dyn LlmSink,
        ) -> Result<LlmResponse> {
            self.0.generate_step(request, sink).await
        }

        fn check(&self, config: &LlmConfig) -> Result<()> {
            self.0.check(config)
        }

        async fn abort(
            &self,
            session: &SessionId,
            created_at: Timestamp,
            reason: Option<&str>,
        ) -> Result<()> {
            self.1.abort(session, created_at, reason).await
        }
    }

    let adapter = BackgroundAdapter::new();
    let llm = ScriptedLlm::new([Reply::tool_call("ask", word("colour"))]);
    let agent = teller().tool(Tool::client::<Word>("ask", "Asks a person."));
    let agent = agent.adapter(Asks(llm, adapter.clone())).build().unwrap();
    let executor = harness.boot(World::new(ScriptedLlm::new([])).registered(&agent)).await;
    run(&*executor, &agent, "go").await;
    executor.abort(&S.into(), None).await.unwrap();
    assert_eq!(adapter.aborts().await[0], format!("{S}: no reason"));
}
