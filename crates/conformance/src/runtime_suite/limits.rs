//! Scenarios for the limits of a turn.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::session::RunStatus;
use helix_agents_core::step::StepResult;
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::json;

use super::support::{completes, fold, run, shout, start_run, teller};
use super::{RuntimeHarness, World};

/// A run that reaches the step limit fails, and all work is kept. The next turn counts its own
/// steps.
pub async fn the_step_limit_fails_the_run_and_the_session_can_continue(
    harness: &impl RuntimeHarness,
) {
    let agent = teller().tool(shout()).max_steps(3).build().unwrap();
    let call = || Reply::tool_call("shout", json!({"word": "a"}));
    let replies = [call(), call(), call(), call(), Reply::text("done")];
    let llm = ScriptedLlm::new(replies);
    let executor = harness.boot(World::new(llm.clone())).await;
    let failed = run(&*executor, &agent, "go").await;
    assert!(failed.error.unwrap().is(ErrorCode::StepLimit));
    assert_eq!((llm.calls(), fold(harness).await.transcript().len()), (3, 7));
    completes(&start_run(&*executor, &agent, "go on").await).await;
}

/// A user-defined stop condition that holds after a step completes the turn without an output.
pub async fn stop_when_completes_without_output(harness: &impl RuntimeHarness) {
    let agent = teller()
        .tool(shout())
        .stop_when(|step| {
            matches!(step, StepResult::ToolCalls { content: Some(text), .. } if text == "ENOUGH")
        })
        .build()
        .unwrap();
    let call = || Reply::tool_call("shout", json!({"word": "a"}));
    let llm = ScriptedLlm::new([call(), call().with_text("ENOUGH"), call()]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!((result.status, result.output, llm.calls()), (RunStatus::Completed, None, 2));
}
