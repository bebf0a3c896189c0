//! Custom planners.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::session::RunStatus;
use helix_agents_core::usage::Usage;
use helix_agents_planner::{PlanOptions, PlanReply, PlanRequest, Planner};
use serde_json::{Value, json};

use crate::support::{
    Heard, action_results, execute, planning, respond, run, runtime, script, shout, shouting,
    teller,
};

/// Decides by the round number, in the older form, and records its inputs.
#[derive(Debug, Default)]
struct Own {
    seen: Mutex<Vec<Value>>,
}

#[async_trait]
impl Planner for Own {
    async fn plan(&self, request: PlanRequest<'_>) -> Result<PlanReply> {
        self.seen.lock().unwrap().push(json!({
            "agent": request.agent,
            "user_input": request.user_input,
            "system_prompt": request.system_prompt,
            "tools": request.available_tools.iter().map(|tool| &*tool.name).collect::<Vec<_>>(),
            "done": request.done_plans.len(),
            "last": request.last_round_records.len(),
            "round_index": request.round_index,
            "max_rounds": request.max_rounds,
            "model": request.config.model,
        }));
        let usage = Usage::new(7, 0);
        let decision = match request.round_index {
            0 => json!({ "tool_command": shouting("a", "x") }),
            _ => json!({ "next_action": "response" }),
        };
        Ok(PlanReply::new(decision, usage))
    }
}

#[tokio::test]
async fn it_decides_instead_of_the_model_and_gets_all_inputs() {
    let own = Arc::new(Own::default());
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let model = script([]);
    let planner: Arc<dyn Planner> = Arc::<Own>::clone(&own);
    let options = PlanOptions::default().planner(Some(planner));
    let runtime = runtime(planning(&model, &agent, options));
    let (_, session, _) = run(&runtime, &agent, "go").await;
    assert!(model.plans_seen().is_empty());
    assert_eq!(action_results(&model.answers_seen()[0].messages), json!({ "a": "X" }));
    assert_eq!(session.usage().tokens.input_tokens, 24);
    let seen = own.seen.lock().unwrap();
    assert_eq!(
        seen[1],
        json!({
            "agent": "teller", "user_input": "go", "system_prompt": "You tell.",
            "tools": ["shout"], "done": 1, "last": 1, "round_index": 1, "max_rounds": 5,
            "model": "scripted",
        })
    );
}

#[tokio::test]
async fn none_lets_the_model_make_the_plans_again() {
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let model = script([execute([shouting("a", "x")]), respond()]);
    let options = PlanOptions::default().planner(Some(Arc::new(Own::default()))).planner(None);
    let runtime = runtime(planning(&model, &agent, options));
    run(&runtime, &agent, "go").await;
    assert_eq!(model.plans_seen().len(), 2);
}

#[derive(Debug)]
struct Failing;

#[async_trait]
impl Planner for Failing {
    async fn plan(&self, _: PlanRequest<'_>) -> Result<PlanReply> {
        Err(Error::new(ErrorCode::ConfigInvalid, "no rules"))
    }
}

#[tokio::test]
async fn its_failure_fails_the_step() {
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let options = PlanOptions::default().planner(Some(Arc::new(Failing)));
    let runtime = runtime(planning(&script([]), &agent, options));
    let (result, _, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.status, RunStatus::Failed);
    assert!(result.error.unwrap().is(ErrorCode::ConfigInvalid));
}
