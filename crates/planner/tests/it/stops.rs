//! The end of a loop.

use std::sync::atomic::Ordering;
use std::time::Duration;

use helix_agents_core::executor::{AgentExecutor, ResumeOptions};
use helix_agents_core::session::RunStatus;
use helix_agents_core::tool::{NoInput, Tool, ToolContext};
use helix_agents_planner::{PlanOptions, RoundState, Stop, tool_logs};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{Gate, PlanningScript, Reply, ScriptedLlm, within};
use serde_json::json;

use crate::support::wall::Wall;
use crate::support::{
    Heard, begin, chunks, custom, execute, planning, respond, run, runtime, script, shout,
    shouting, story, teller,
};

fn rounds(count: usize) -> Vec<Reply> {
    (0..count).map(|round| execute([shouting("a", &format!("w{round}"))])).collect()
}

#[tokio::test]
async fn a_plan_without_commands_ends_it() {
    let model = script([Reply::text(r#"{"next_action":"execute","execution_commands":[]}"#)]);
    let session = story(&model, PlanOptions::default()).await;
    assert!(tool_logs(session.transcript()).is_empty());
    assert_eq!(session.last_step(), 2);
}

#[tokio::test]
async fn use_tool_false_ends_it() {
    let plan = json!({ "use_tool": false, "tool_commands": [shouting("a", "x")] });
    let model = script([Reply::text(plan.to_string())]);
    let session = story(&model, PlanOptions::default()).await;
    assert_eq!(session.usage().tool_calls, 0);
}

#[tokio::test]
async fn text_without_a_plan_ends_it() {
    let model = script([Reply::text("I would just answer.")]);
    let session = story(&model, PlanOptions::default()).await;
    assert_eq!(session.last_step(), 2);
}

/// Weakness 4: one more plan was made at the limit, and dropped.
#[tokio::test]
async fn weakness_4_no_plan_is_made_beyond_the_last_round() {
    let model = script(rounds(9));
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let runtime = runtime(planning(&model, &agent, PlanOptions::default().max_rounds(2)));
    let (_, session, handle) = run(&runtime, &agent, "go").await;
    assert_eq!(model.plans_seen().len(), 2);
    assert_eq!(session.usage().tool_calls, 2);
    let logs = custom(&chunks(&handle).await, "tool_logs");
    assert_eq!(logs[0]["stopped"], "max_rounds");
}

#[tokio::test]
async fn there_are_five_rounds_by_default() {
    let model = script(rounds(9));
    let session = story(&model, PlanOptions::default()).await;
    assert_eq!((model.plans_seen().len(), session.usage().tool_calls), (5, 5));
}

#[tokio::test]
async fn with_no_rounds_one_plan_is_made_and_nothing_is_executed() {
    let model = script(rounds(1));
    let session = story(&model, PlanOptions::default().max_rounds(0)).await;
    assert_eq!((model.plans_seen().len(), session.usage().tool_calls), (1, 0));
    assert_eq!(RoundState::of(session.transcript()).stopped, Some(Stop::MaxRounds));
}

#[tokio::test]
async fn an_agent_without_tools_makes_no_plan() {
    let model = script([]);
    let agent = teller().build().unwrap();
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (result, session, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), "done");
    assert_eq!((model.plans_seen().len(), session.last_step()), (0, 1));
}

#[tokio::test]
async fn if_disabled_the_model_calls_tools_itself() {
    let model = PlanningScript::new(
        [],
        ScriptedLlm::new([Reply::tool_call("shout", json!({ "word": "x" })), Reply::text("done")]),
    );
    let session = story(&model, PlanOptions::default().enabled(false)).await;
    assert_eq!((model.plans_seen().len(), session.usage().tool_calls), (0, 1));
}

/// A call that the model made itself is answered, and no plan is made in the same turn.
#[tokio::test]
async fn enabled_in_the_middle_of_a_turn_it_starts_with_the_next() {
    let (heard, gate) = (Heard::default(), Gate::new());
    let agent = teller().tool(shout(&heard)).build().unwrap();
    let store = MemoryStore::default();
    let boot = |llm| {
        let builder = LocalRuntime::builder().store(store.clone()).llm(llm);
        builder.grace(Duration::from_millis(50)).build().unwrap()
    };
    let call = Reply::tool_call("shout", json!({ "word": "x" }));
    let model = PlanningScript::new(
        [respond()],
        ScriptedLlm::new([call, Reply::text("never").at_gate(&gate)]),
    );
    let off = planning(&model, &agent, PlanOptions::default().enabled(false));
    let first = boot(off);
    let handle = begin(&first, &agent, "go").await;
    gate.reached().await;
    within(first.shutdown()).await;
    gate.open();
    let second = boot(planning(&model, &agent, PlanOptions::default()));
    let options = ResumeOptions::default();
    let resumed = second.resume(agent.erased(), handle.session(), options).await.unwrap();
    assert_eq!(within(resumed.result()).await.unwrap().status, RunStatus::Completed);
    assert!(model.plans_seen().is_empty());
}

/// Weakness 13: a command that kept failing was retried forever.
#[tokio::test]
async fn weakness_13_commands_that_failed_twice_in_a_row_are_not_repeated() {
    let model = script((0..5).map(|_| execute([shouting("a", "")])));
    let session = story(&model, PlanOptions::default()).await;
    assert_eq!((model.plans_seen().len(), session.usage().tool_calls), (3, 2));
    assert_eq!(RoundState::of(session.transcript()).stopped, Some(Stop::NoProgress));
}

#[tokio::test]
async fn successful_commands_may_be_repeated() {
    let model = script((0..5).map(|_| execute([shouting("a", "x")])));
    assert_eq!(story(&model, PlanOptions::default()).await.usage().tool_calls, 5);
}

/// Weakness 1: the loop's timeout never fired.
#[tokio::test]
async fn weakness_1_a_plan_is_dropped_at_the_time_limit() {
    let (wall, stuck) = (Wall::default(), Gate::new());
    wall.rings.open();
    let model = script([respond().at_gate(&stuck)]);
    let options = PlanOptions::default().timeout(Duration::from_secs(5), wall);
    let session = story(&model, options).await;
    assert_eq!(RoundState::of(session.transcript()).stopped, Some(Stop::Timeout));
}

/// Weakness 1, between rounds: the records are kept and used for the answer.
#[tokio::test]
async fn weakness_1_records_survive_a_time_limit_between_rounds() {
    let wall = Wall::default();
    let later = wall.clone();
    let slow = Tool::function("slow", "Takes a minute.", move |_: NoInput, _: ToolContext| {
        later.now.fetch_add(60_000, Ordering::SeqCst);
        async { Ok("slow result") }
    });
    let agent = teller().tool(slow).build().unwrap();
    let model = script([execute([json!({ "purpose": "a", "tool_name": "slow" })]), respond()]);
    let options = PlanOptions::default().timeout(Duration::from_secs(59), wall);
    let runtime = runtime(planning(&model, &agent, options));
    let (result, session, handle) = run(&runtime, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), "done");
    assert_eq!(model.plans_seen().len(), 1, "no useless plan is requested");
    assert_eq!(tool_logs(session.transcript())[0].result, "slow result");
    assert_eq!(custom(&chunks(&handle).await, "tool_logs")[0]["stopped"], "timeout");
}
