//! The answer after the loop.

use helix_agents_core::llm::ToolChoice;
use helix_agents_core::message::Message;
use helix_agents_core::session::RunStatus;
use helix_agents_planner::{EXTRA_INSTRUCTION, PlanOptions, tool_logs};
use helix_agents_test::{Part, PlanningScript, Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{
    Heard, action_results, execute, planning, respond, run, runtime, script, shout, shouting,
    story, teller, texts,
};

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Report {
    answer: String,
}

#[tokio::test]
async fn it_is_requested_without_the_loop_but_with_its_results() {
    let model = script([execute([shouting("a", "x")]), respond()]);
    story(&model, PlanOptions::default()).await;
    let seen = &model.answers_seen()[0];
    let texts = texts(&seen.messages);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert_eq!(texts[0], "go");
    assert!(texts[1].ends_with(EXTRA_INSTRUCTION));
    assert_eq!(action_results(&seen.messages), json!({ "a": "X" }));
    assert_eq!(seen.prompt, "You tell.");
    assert!(seen.tools.is_empty());
}

#[tokio::test]
async fn without_records_nothing_is_injected() {
    let model = script([respond()]);
    story(&model, PlanOptions::default()).await;
    assert_eq!(texts(&model.answers_seen()[0].messages), ["go"]);
}

/// Weakness 6: a correction of the answer ran the whole loop again.
#[tokio::test]
async fn weakness_6_a_corrected_output_repeats_no_call() {
    let heard = Heard::default();
    let agent = teller().tool(shout(&heard)).output::<Report>().build().unwrap();
    let answers = ScriptedLlm::new([
        Reply::text("plain"),
        Reply::finish(json!({ "answer": 5 })),
        Reply::finish(json!({ "answer": "X" })),
    ]);
    let model = PlanningScript::new([execute([shouting("a", "x")]), respond()], answers);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (result, session, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), json!({ "answer": "X" }));
    assert_eq!((heard.lock().unwrap().len(), model.plans_seen().len()), (1, 2));
    let seen = model.answers_seen();
    assert_eq!(seen.len(), 3);
    for seen in &seen {
        assert_eq!(seen.tools, ["__finish__"]);
        assert_eq!(action_results(&seen.messages), json!({ "a": "X" }));
    }
    assert_eq!(tool_logs(session.transcript()).len(), 1);
}

#[tokio::test]
async fn a_native_output_is_corrected_without_a_plan() {
    let heard = Heard::default();
    let agent = teller().tool(shout(&heard)).output::<Report>().native_output().build().unwrap();
    let answers = ScriptedLlm::new([Reply::text("plain"), Reply::output(json!({ "answer": "X" }))]);
    let model = PlanningScript::new([execute([shouting("a", "x")]), respond()], answers);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (result, _, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), json!({ "answer": "X" }));
    assert_eq!((heard.lock().unwrap().len(), model.plans_seen().len()), (1, 2));
    let (_, plan) = &model.plans_seen()[0];
    let form = plan.output_schema.as_ref().unwrap();
    assert_eq!(form["required"][0], "next_action", "the schema of a plan");
    let answer = model.answers_seen().pop().unwrap();
    assert_eq!(answer.output_schema.unwrap()["required"][0], "answer");
}

#[tokio::test]
async fn a_finish_tool_is_not_a_command_and_the_only_tool_of_the_answer() {
    let heard = Heard::default();
    let file = shout(&heard).named("file").finish_with();
    let agent = teller().tool(shout(&heard)).tool(file).build().unwrap();
    let finishing = json!({ "tool_name": "file", "tool_kwargs": { "word": "too early" } });
    let answers = ScriptedLlm::new([Reply::tool_call("file", json!({ "word": "now" }))]);
    let model = PlanningScript::new(
        [execute([shouting("a", "x"), finishing.clone()]), execute([finishing])],
        answers,
    );
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (result, _, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), "NOW");
    assert_eq!(*heard.lock().unwrap(), ["x", "now"]);
    assert_eq!(model.answers_seen()[0].tools, ["file"]);
}

#[tokio::test]
async fn a_call_that_the_answer_was_not_offered_is_not_run() {
    let heard = Heard::default();
    let agent = teller().tool(shout(&heard)).build().unwrap();
    let answers = ScriptedLlm::new([Reply::tool_call("shout", json!({ "word": "unplanned" }))]);
    let model = PlanningScript::new([respond()], answers);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (result, _, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.status, RunStatus::Failed);
    assert!(result.error.unwrap().message.contains("not offered"));
    assert!(heard.lock().unwrap().is_empty());
}

/// The layout refers to all calls that the model made.
#[tokio::test]
async fn an_answer_that_lost_a_call_has_no_layout() {
    let agent = teller().tool(shout(&Heard::default())).output::<Report>().build().unwrap();
    let signed = |name: &str, arguments: Value| {
        Part::call(name, arguments).with_data(json!({ "signature": name }))
    };
    let answers = ScriptedLlm::new([Reply::of_parts([
        signed("shout", json!({ "word": "unplanned" })),
        signed("__finish__", json!({ "answer": "X" })),
    ])]);
    let model = PlanningScript::new([respond()], answers);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (result, session, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), json!({ "answer": "X" }));
    let mut replies = session.transcript().iter().rev().filter_map(|message| match &**message {
        Message::Assistant(reply) => Some(reply),
        _ => None,
    });
    let answer = replies.next().unwrap();
    assert_eq!((answer.tool_calls.len(), &answer.layout), (1, &None));
}

#[tokio::test]
async fn the_last_step_of_a_turn_returns_the_output() {
    let agent =
        teller().tool(shout(&Heard::default())).max_steps(3).output::<Report>().build().unwrap();
    let answers = ScriptedLlm::new([Reply::finish(json!({ "answer": "X" }))]);
    // A plan that had to be made again used the step of the second round.
    let model = PlanningScript::new([Reply::text("{"), execute([shouting("b", "y")])], answers)
        .revise(0, execute([shouting("a", "x")]));
    let runtime = runtime(planning(&model, &agent, PlanOptions::default().max_rounds(2)));
    let (result, session, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), json!({ "answer": "X" }));
    assert_eq!(session.turn_steps(), 3);
    assert_eq!(model.answers_seen()[0].forced_tool.as_deref(), Some("__finish__"));
    assert_ne!(ToolChoice::Auto, ToolChoice::Tool("__finish__"));
}
