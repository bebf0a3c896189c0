//! Scenarios for user code that panics, and for calls that crash every process.

use std::panic::panic_any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use helix_agents_core::agent::SubAgent;
use helix_agents_core::error::{ErrorCode, ErrorRecord, Result};
use helix_agents_core::event::{Suspension, ToolOutcome};
use helix_agents_core::executor::{AgentExecutor, Input};
use helix_agents_core::hooks::{
    AgentHooks, HookContext, HookDecision, HookResult, LlmChange, SubAgentView, ToolCallView,
};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::message::Message;
use helix_agents_core::session::RunStatus;
use helix_agents_core::state::Patch;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    Notes, Word, all_crashed, asks, completes, end, helper, note, report, resume, resume_to_end,
    run, scripts, shout, start_run, teller, tool_results, word,
};
use super::{RuntimeHarness, World};

/// Returns a tool that counts its executions.
fn counted(count: &Arc<AtomicUsize>) -> Tool {
    let count = Arc::clone(count);
    Tool::function("hand_in", "Hands in.", move |input: Word, _: ToolContext| {
        count.fetch_add(1, Ordering::Relaxed);
        async move { Ok::<_, ToolError>(input.word) }
    })
}

/// Asserts that another process has nothing to recover.
async fn assert_nothing_to_recover(executor: &dyn AgentExecutor) {
    let recovered = executor.recover().await.unwrap();
    assert!(recovered.is_empty(), "{} runs were recovered", recovered.len());
}

/// A panic in a finish transform fails the run. The finish tool does not run again.
pub async fn a_transform_that_panics_fails_the_run(harness: &impl RuntimeHarness) {
    let count = Arc::default();
    let tool = counted(&count).finish_with_transform(
        |_: String| -> std::result::Result<String, ToolError> { panic!("on purpose") },
    );
    let agent = teller().tool(tool).build().unwrap();
    let llm = ScriptedLlm::new([Reply::tool_call("hand_in", word("x"))]);
    let executor = harness.boot(World::new(llm)).await;
    let failed = run(&*executor, &agent, "go").await;
    assert_eq!(failed.status, RunStatus::Failed);
    assert!(failed.error.unwrap().is(ErrorCode::FinishTransformFailed));
    assert_eq!(count.load(Ordering::Relaxed), 1);
    assert_nothing_to_recover(&*executor).await;
}

/// Hooks of which either the notifications or the decisions panic.
struct Panics {
    decisions: bool,
}

impl Panics {
    fn notify(&self) -> HookResult {
        if self.decisions { Ok(()) } else { panic_any("on purpose") }
    }
}

#[async_trait]
impl AgentHooks for Panics {
    async fn on_agent_start(&self, _: &HookContext) -> HookResult {
        self.notify()
    }

    async fn on_agent_complete(&self, _: &HookContext, _: Option<&Json>) -> HookResult {
        self.notify()
    }

    async fn on_agent_fail(&self, _: &HookContext, _: &ErrorRecord) -> HookResult {
        self.notify()
    }

    async fn on_agent_suspended(&self, _: &HookContext, _: &Suspension) -> HookResult {
        self.notify()
    }

    async fn on_agent_resumed(&self, _: &HookContext, _: &Suspension) -> HookResult {
        self.notify()
    }

    async fn before_llm_call(
        &self,
        cx: &HookContext,
        _: &LlmConfig,
    ) -> HookResult<HookDecision<LlmChange>> {
        // The first turn is for tools.
        assert!(!self.decisions || cx.turn == 1, "on purpose");
        Ok(HookDecision::Continue)
    }

    async fn after_llm_call(&self, _: &HookContext, _: &LlmResponse) -> HookResult {
        self.notify()
    }

    async fn before_tool(
        &self,
        _: &HookContext,
        _: ToolCallView<'_>,
    ) -> HookResult<HookDecision<Json>> {
        assert!(!self.decisions, "on purpose");
        Ok(HookDecision::Continue)
    }

    async fn after_tool(
        &self,
        _: &HookContext,
        _: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        self.notify()
    }

    async fn before_sub_agent(&self, _: &HookContext, _: SubAgentView<'_>) -> HookResult {
        assert!(!self.decisions, "on purpose");
        Ok(())
    }

    async fn after_sub_agent(
        &self,
        _: &HookContext,
        _: SubAgentView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        self.notify()
    }

    async fn on_message(&self, _: &HookContext, _: &Message) -> HookResult {
        self.notify()
    }

    async fn on_state_change(&self, _: &HookContext, _: &Patch) -> HookResult {
        self.notify()
    }

    fn on_text_delta(&self, _: &HookContext, _: &str) {
        assert!(self.decisions, "on purpose");
    }

    fn on_thinking(&self, _: &HookContext, _: &str, _: bool) {
        assert!(self.decisions, "on purpose");
    }
}

/// A notification hook that panics is treated as failed. The run completes as without the hook.
pub async fn hooks_that_panic_are_hooks_that_failed(harness: &impl RuntimeHarness) {
    let agent = teller()
        .state::<Notes>()
        .tool(note())
        .sub_agent(&helper("helper").build().unwrap())
        .hooks(Panics { decisions: false })
        .build()
        .unwrap();
    let replies = [
        Reply::tool_call("note", word("x")).with_text("hm").with_thinking("well"),
        asks(&["helper"]),
        Reply::text("done"),
    ];
    let executor = harness.boot(World::new(scripts(replies, [report()]))).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    assert_eq!(tool_results(harness, "note").await, "tool note 1\n");
    assert_nothing_to_recover(&*executor).await;
}

/// A panic in a hook that decides about a tool, a sub-agent or a model call refuses the call.
pub async fn hooks_that_panic_when_they_are_asked_refuse(harness: &impl RuntimeHarness) {
    let agent = teller()
        .tool(shout())
        .sub_agent(&helper("helper").build().unwrap())
        .hooks(Panics { decisions: true })
        .build()
        .unwrap();
    let replies = [Reply::tool_call("shout", word("x")), asks(&["helper"]), Reply::text("done")];
    let executor = harness.boot(World::new(scripts(replies, [report()]))).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    let results = tool_results(harness, "s").await;
    assert_eq!(results.matches("the hook panicked").count(), 2, "{results}");
    let failed = end(&start_run(&*executor, &agent, "again").await).await;
    assert!(failed.error.unwrap().is(ErrorCode::HookRefused));
    assert_nothing_to_recover(&*executor).await;
}

/// A panic in the prompt function fails the run before the model is called.
pub async fn a_prompt_that_panics_fails_the_run(harness: &impl RuntimeHarness) {
    let agent = teller()
        .state::<Notes>()
        .system_prompt_of(|notes: Notes| {
            assert_eq!(notes.last, "", "on purpose");
            "You tell.".to_owned()
        })
        .build()
        .unwrap();
    let llm = ScriptedLlm::new([Reply::text("done")]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let state = json!({"notes": [], "last": "x"});
    let failed = run(&*executor, &agent, Input::from("go").with_state(&state).unwrap()).await;
    assert!(failed.error.unwrap().is(ErrorCode::CodePanicked));
    assert_eq!(llm.calls(), 0);
    assert_nothing_to_recover(&*executor).await;
}

/// A panic in a stop condition fails the run.
pub async fn a_stop_condition_that_panics_fails_the_run(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).stop_when(|_| panic!("on purpose")).build().unwrap();
    let llm = ScriptedLlm::new([Reply::tool_call("shout", word("x"))]);
    let executor = harness.boot(World::new(llm)).await;
    let failed = run(&*executor, &agent, "go").await;
    let error = failed.error.unwrap();
    assert!(error.is(ErrorCode::CodePanicked), "{error}");
    assert!(error.message.contains("`stop_when`"), "{error}");
    assert_nothing_to_recover(&*executor).await;
}

/// A model whose adapter panics.
#[derive(Debug)]
struct Broken;

#[async_trait]
impl LlmAdapter for Broken {
    async fn generate_step(&self, _: LlmRequest<'_>, sink: &dyn LlmSink) -> Result<LlmResponse> {
        sink.text_delta("half a wo");
        panic!("on purpose");
    }

    fn check(&self, _: &LlmConfig) -> Result<()> {
        Ok(())
    }
}

/// A panic in a model adapter fails the run.
pub async fn a_model_adapter_that_panics_fails_the_run(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let executor = harness.boot(World::new(Broken)).await;
    let failed = run(&*executor, &agent, "go").await;
    assert!(failed.error.unwrap().is(ErrorCode::CodePanicked));
    assert_nothing_to_recover(&*executor).await;
}

/// A panic in the input function of a sub-agent fails the call.
pub async fn a_sub_agent_whose_input_panics_is_a_failed_call(harness: &impl RuntimeHarness) {
    let helper = helper("helper").build().unwrap();
    let helper = SubAgent::new(&helper).input(|_: Word| -> Input { panic!("on purpose") });
    let agent = teller().sub_agent(helper).build().unwrap();
    let replies = [Reply::tool_call("subagent__helper", word("x")), Reply::text("done")];
    let executor = harness.boot(World::new(scripts(replies, []))).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    let results = tool_results(harness, "subagent__helper").await;
    assert!(results.contains("the sub-agent's input panicked"), "{results}");
}

/// Number of takeovers of the agents in the last scenarios.
const TAKEOVERS: u32 = 2;

/// If a tool call crashes every process that executes it, the run fails with `crash_loop` after the
/// maximum number of takeovers. The error names the call, and a user may resume the session.
pub async fn a_call_that_crashes_every_process_is_abandoned(harness: &impl RuntimeHarness) {
    let (count, gate) = (Arc::<AtomicUsize>::default(), Gate::new());
    let (counted, closed) = (Arc::clone(&count), gate.clone());
    let tool = Tool::function("die", "Dies.", move |_: Word, _: ToolContext| {
        counted.fetch_add(1, Ordering::Relaxed);
        let gate = closed.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>("alive")
        }
    });
    let agent = teller().tool(tool).max_takeovers(TAKEOVERS).build().unwrap();
    let script =
        || ScriptedLlm::new([Reply::tool_call("die", json!({"word": "x"})), Reply::text("done")]);
    let executor = harness.boot(World::new(script())).await;
    start_run(&*executor, &agent, "go").await;
    for crashed in 1..=2 {
        gate.reached_by(crashed).await;
        all_crashed(harness).await;
        let executor = harness.boot(World::new(script())).await;
        if crashed == 2 {
            let failed = resume_to_end(&*executor, &agent).await;
            let error = failed.error.unwrap();
            assert!(error.is(ErrorCode::CrashLoop), "{error}");
            assert!(error.message.contains("1.0 (`die`)"), "{error}");
            assert_nothing_to_recover(&*executor).await;
            gate.open();
            // A user may retry.
            assert_eq!(resume_to_end(&*executor, &agent).await.status, RunStatus::Completed);
        } else {
            resume(&*executor, &agent).await.unwrap();
        }
    }
    assert_eq!(count.load(Ordering::Relaxed), 2, "one attempt of each earlier run");
}

/// If a model call crashes every process that makes it, the run fails with `crash_loop` after the
/// maximum number of takeovers. This holds although a model call leaves no event in the log.
pub async fn a_model_call_that_crashes_every_process_is_abandoned(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let agent = teller().max_takeovers(TAKEOVERS).build().unwrap();
    let script = || ScriptedLlm::new([Reply::text("done").at_gate(&gate)]);
    let executor = harness.boot(World::new(script())).await;
    start_run(&*executor, &agent, "go").await;
    gate.reached_by(1).await;
    all_crashed(harness).await;
    let executor = harness.boot(World::new(script())).await;
    resume(&*executor, &agent).await.unwrap();
    gate.reached_by(2).await;
    all_crashed(harness).await;
    let llm = script();
    let executor = harness.boot(World::new(llm.clone())).await;
    let failed = resume_to_end(&*executor, &agent).await;
    assert!(failed.error.unwrap().is(ErrorCode::CrashLoop));
    assert_eq!(llm.calls(), 0);
    assert_nothing_to_recover(&*executor).await;
}
