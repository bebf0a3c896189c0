//! Invalid options are rejected when the loop is set up.

use std::time::Duration;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::llm::LlmConfig;
use helix_agents_planner::{PlanOptions, PlanningLlm};
use helix_agents_runtime_local::TokioClock;

use crate::support::{Heard, planning, respond, run, runtime, script, shout, teller};

#[track_caller]
fn refused(options: PlanOptions, why: &str) {
    let agent = teller().tool(shout(&Heard::default())).max_steps(6).build().unwrap();
    let error = PlanningLlm::new(script([])).plan(agent.definition(), options).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    assert!(error.message().contains(why), "{error}");
}

#[test]
fn invalid_options_are_rejected() {
    refused(PlanOptions::default().timeout(Duration::ZERO, TokioClock::new()), "`timeout`");
    refused(PlanOptions::default().max_result_bytes(0), "`max_result_bytes`");
    refused(PlanOptions::default().max_rounds(6), "the agent's `max_steps` is 6");
}

#[test]
fn an_agent_plans_once() {
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let llm = planning(&script([]), &agent, PlanOptions::default());
    let error = llm.plan(agent.definition(), PlanOptions::default()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
}

#[tokio::test]
async fn plans_may_use_another_model() {
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let model = script([respond()]);
    let config = LlmConfig::new("small");
    let runtime = runtime(planning(&model, &agent, PlanOptions::default().llm(config)));
    run(&runtime, &agent, "go").await;
    assert_eq!(model.plans_seen()[0].1.config.model, "small");
    assert_eq!(model.answers_seen()[0].config.model, "scripted");
}
