//! Planning without execution.

use helix_agents_planner::{PlanOptions, PlanningLlm};
use helix_agents_test::Reply;

use crate::support::{Heard, execute, inputs, planning, script, shout, shouting, teller};

#[tokio::test]
async fn a_plan_is_made_and_nothing_is_executed() {
    let heard = Heard::default();
    let agent = teller().tool(shout(&heard)).build().unwrap();
    let model = script([execute([shouting("a", "x"), shouting("b", "y")])]);
    // With its own options, and without any.
    for llm in [
        planning(&model, &agent, PlanOptions::default()),
        PlanningLlm::new(script([execute([shouting("a", "x"), shouting("b", "y")])])),
    ] {
        let commands = llm.plan_once(agent.definition(), "go").await.unwrap();
        let purposes: Vec<_> = commands.iter().map(|command| &*command.purpose).collect();
        assert_eq!(purposes, ["a", "b"]);
    }
    assert!(heard.lock().unwrap().is_empty());
    assert_eq!(inputs(&model)[0]["input"]["user_input"], "go");
}

#[tokio::test]
async fn without_tools_no_model_is_called() {
    let model = script([]);
    let agent = teller().build().unwrap();
    let commands =
        planning(&model, &agent, PlanOptions::default()).plan_once(agent.definition(), "go").await;
    assert!(commands.unwrap().is_empty());
    assert!(model.plans_seen().is_empty());
}

#[tokio::test]
async fn a_plan_that_cannot_be_read_is_made_again_and_then_an_error() {
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let broken = || Reply::text("{");
    let model = script([broken()]).revise(0, broken()).revise(0, broken());
    let llm = planning(&model, &agent, PlanOptions::default());
    let error = llm.plan_once(agent.definition(), "go").await.unwrap_err();
    assert_eq!(error.code(), helix_agents_core::error::ErrorCode::MaxTokens);
    assert_eq!(model.plans_seen().len(), 3);
}
