//! Plans that cannot be executed.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::session::RunStatus;
use helix_agents_core::step::StopReason;
use helix_agents_planner::{MAX_COMMANDS, PlanOptions};
use helix_agents_test::Reply;

use crate::support::{
    Heard, execute, infos, planning, respond, run, runtime, script, shout, shouting, story, teller,
};

fn cut() -> Reply {
    let plan = execute([shouting("a", "x")]);
    plan.with_stop_reason(StopReason::MaxTokens)
}

/// Weakness 5: a plan that was cut off was completed by guessing, and executed.
#[tokio::test]
async fn weakness_5_a_plan_that_was_cut_off_is_made_again_and_not_executed() {
    let model = script([cut()]).revise(0, execute([shouting("a", "y")]));
    let session = story(&model, PlanOptions::default().max_rounds(1)).await;
    assert_eq!(session.usage().tool_calls, 1);
    let infos = infos(&model);
    assert_eq!(infos[0].get("problem_with_last_plan"), None);
    assert_eq!(infos[1]["problem_with_last_plan"], "the plan was cut off; write a shorter one");
    assert_eq!(session.usage().tokens.input_tokens, 30, "its usage is counted");
}

#[tokio::test]
async fn a_plan_that_does_not_end_is_made_again() {
    let model = script([Reply::text(r#"{"next_action":"execute","execution_commands":[{"#)])
        .revise(0, respond());
    assert_eq!(story(&model, PlanOptions::default()).await.usage().tool_calls, 0);
    assert_eq!(model.plans_seen().len(), 2);
}

#[tokio::test]
async fn a_response_counts_even_if_it_was_cut_off() {
    let model = script([respond().with_stop_reason(StopReason::MaxTokens)]);
    story(&model, PlanOptions::default()).await;
    assert_eq!(model.plans_seen().len(), 1);
}

#[tokio::test]
async fn plans_that_stay_unusable_fail_the_run_and_a_resume_retries() {
    use helix_agents_core::executor::{AgentExecutor, ResumeOptions};
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let model = script([cut()]).revise(0, cut()).revise(0, cut()).revise(0, respond());
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (result, session, handle) = run(&runtime, &agent, "go").await;
    assert_eq!(result.status, RunStatus::Failed);
    assert!(result.error.unwrap().is(ErrorCode::MaxTokens));
    assert_eq!((model.plans_seen().len(), session.usage().tool_calls), (3, 0));
    let resumed = runtime.resume(agent.erased(), handle.session(), ResumeOptions::default()).await;
    assert_eq!(resumed.unwrap().result().await.unwrap().status, RunStatus::Completed);
    assert_eq!(model.plans_seen().len(), 4);
}

#[tokio::test]
async fn a_plan_with_too_many_commands_is_made_again() {
    let many = execute(vec![shouting("a", "x"); MAX_COMMANDS + 1]);
    let model = script([many]).revise(0, respond());
    let session = story(&model, PlanOptions::default()).await;
    assert_eq!(session.usage().tool_calls, 0);
    assert!(infos(&model)[1]["problem_with_last_plan"].as_str().unwrap().contains("64 commands"));
}

#[tokio::test]
async fn calls_instead_of_a_plan_are_not_run() {
    let model = script([Reply::tool_call("shout", serde_json::json!({ "word": "x" }))])
        .revise(0, respond());
    assert_eq!(story(&model, PlanOptions::default()).await.usage().tool_calls, 0);
}

#[tokio::test]
async fn a_failure_of_the_model_fails_the_step() {
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let model = script([Reply::fails(ErrorCode::ProviderUnauthorized)]);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (result, _, _) = run(&runtime, &agent, "go").await;
    assert!(result.error.unwrap().is(ErrorCode::ProviderUnauthorized));
    let model = script([Reply::text("no").with_stop_reason(StopReason::Refusal)]);
    let runtime = crate::support::runtime(planning(&model, &agent, PlanOptions::default()));
    let (result, _, _) = run(&runtime, &agent, "go").await;
    assert!(result.error.unwrap().is(ErrorCode::Refusal));
}
