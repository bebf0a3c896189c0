//! Whole loops: rounds, records, and the planner's inputs.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::Input;
use helix_agents_core::message::UserMessage;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_planner::{PlanOptions, RoundState, tool_logs};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::{Gate, PlanningScript, Reply, ScriptedLlm, within};
use serde_json::json;

use crate::support::{
    Heard, Word, action_results, begin, execute, infos, inputs, planning, respond, run, runtime,
    script, shout, shouting, story, teller, texts,
};

async fn a_loop_on(store: impl StateStore + StreamManager + Clone) {
    let heard = Heard::default();
    let agent = teller().tool(shout(&heard)).build().unwrap();
    let model = script([
        execute([shouting("a", "x"), shouting("b", "")]),
        execute([shouting("a", "z")]),
        respond(),
    ]);
    let llm = planning(&model, &agent, PlanOptions::default());
    let runtime = LocalRuntime::builder().store(store).llm(llm).build().unwrap();
    let (result, session, _) = run(&runtime, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), "done");
    assert_eq!(*heard.lock().unwrap(), ["x", "", "z"]);
    assert_eq!(session.last_step(), 4);
    let records = tool_logs(session.transcript());
    let outcomes: Vec<_> = records
        .iter()
        .map(|record| (&*record.purpose, record.success, record.result.clone(), &*record.error))
        .collect();
    assert_eq!(
        outcomes,
        [
            ("a", true, json!("X"), ""),
            ("b", false, json!(null), "nothing to shout"),
            ("a", true, json!("Z"), ""),
        ]
    );
    let answers = model.answers_seen();
    assert_eq!(answers.len(), 1);
    assert_eq!(
        action_results(&answers[0].messages),
        json!({ "a": "X", "b": { "error": "nothing to shout", "result": null }, "a (2)": "Z" })
    );
    let state = RoundState::of(session.transcript());
    assert_eq!((state.round_index, state.last_round_records), (2, records[2..].to_vec()));
    assert_eq!(state.done_plans, records);
}

#[tokio::test]
async fn a_loop_in_memory() {
    a_loop_on(MemoryStore::default()).await;
}

#[tokio::test]
async fn a_loop_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    a_loop_on(SqliteStore::open(folder.path().join("loop.db")).await.unwrap()).await;
}

#[tokio::test]
async fn a_planner_gets_all_of_its_inputs() {
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let model = script([execute([shouting("a", "x")]), respond()]);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default().max_rounds(7)));
    let hidden = UserMessage::hidden("be quick");
    let input = Input::from("go").with_message(hidden);
    run(&runtime, &agent, input).await;
    let inputs = inputs(&model);
    let record = json!({
        "purpose": "a", "tool_name": "shout", "kwargs": { "word": "x" },
        "todo_suggestion": "tell", "next": "tell", "success": true, "result": "X", "error": "",
    });
    let mut done = record.clone();
    done["result"] = "see `last_round_result`".into();
    let last = &inputs[1];
    assert_eq!(last["input"]["user_input"], "go");
    assert_eq!(last["input"]["user_extra_requirement"], "be quick");
    assert_eq!(last["input"]["available_tools"][0]["name"], "shout");
    assert_eq!(last["input"]["available_tools"][0]["desc"], "Says a word loudly.");
    assert_eq!(last["input"]["available_tools"][0]["kwargs"]["required"], json!(["word"]));
    assert_eq!(
        last["info"],
        json!({
            "done_plans": [done], "last_round_result": [record],
            "round_index": 1, "max_rounds": 7,
        })
    );
    assert_eq!(inputs[0]["info"]["done_plans"], json!([]));
    assert_eq!(inputs[0]["info"]["round_index"], 0);
    let (_, seen) = &model.plans_seen()[0];
    assert!(seen.tools.is_empty(), "plans are text: {:?}", seen.tools);
}

/// Weakness 2: the records of earlier rounds accumulated.
#[tokio::test]
async fn weakness_2_last_round_is_the_previous_round_only() {
    let model = script([execute([shouting("a", "x")]), execute([shouting("b", "y")]), respond()]);
    story(&model, PlanOptions::default()).await;
    let infos = infos(&model);
    let last = infos[2]["last_round_result"].as_array().unwrap();
    assert_eq!((last.len(), &last[0]["purpose"]), (1, &json!("b")));
    assert_eq!(infos[2]["done_plans"].as_array().unwrap().len(), 2);
}

/// Weakness 3: equal records were dropped.
#[tokio::test]
async fn weakness_3_equal_calls_are_all_made_and_all_kept() {
    let model = script([execute(vec![shouting("a", "x"); 3]), respond()]);
    let session = story(&model, PlanOptions::default()).await;
    assert_eq!(tool_logs(session.transcript()).len(), 3);
    assert_eq!(session.usage().tool_calls, 3);
    let results = action_results(&model.answers_seen()[0].messages);
    assert_eq!(results, json!({ "a": "X", "a (2)": "X", "a (3)": "X" }));
}

/// Weakness 7, the other way round: a result with an `error` member is not a failure.
#[tokio::test]
async fn weakness_7_a_result_with_an_error_member_is_a_success() {
    use helix_agents_core::tool::{NoInput, Tool, ToolContext};
    let look = |_: NoInput, _: ToolContext| async { Ok(json!({ "error": "E42 means so" })) };
    let agent = teller().tool(Tool::function("look", "Looks it up.", look)).build().unwrap();
    let model = script([execute([json!({ "purpose": "a", "tool_name": "look" })]), respond()]);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (_, session, _) = run(&runtime, &agent, "go").await;
    let records = tool_logs(session.transcript());
    assert!(records[0].success, "{records:?}");
    assert_eq!(records[0].result, json!({ "error": "E42 means so" }));
}

/// Weakness 8: arguments reached the tool without validation.
#[tokio::test]
async fn weakness_8_invalid_arguments_are_reported_and_not_run() {
    let wrong = json!({ "purpose": "a", "tool_name": "shout", "tool_kwargs": { "word": 5 } });
    let unknown = json!({ "purpose": "b", "tool_name": "whisper" });
    let heard = Heard::default();
    let agent = teller().tool(shout(&heard)).build().unwrap();
    let model = script([execute([wrong, unknown]), respond()]);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (_, session, _) = run(&runtime, &agent, "go").await;
    let records = tool_logs(session.transcript());
    assert!(heard.lock().unwrap().is_empty());
    assert!(records[0].error.contains("do not match"), "{}", records[0].error);
    assert!(records[1].error.contains("there is no tool `whisper`"), "{}", records[1].error);
    let records = &infos(&model)[1]["last_round_result"];
    assert_eq!(records[0]["success"], false);
}

/// Weakness 9: the planner saw neither the prompt nor the conversation.
#[tokio::test]
async fn weakness_9_the_planner_sees_prompt_and_history_bounded() {
    let heard = Heard::default();
    let long = format!("You tell. {}", "p".repeat(20_000));
    let agent = teller().system_prompt(long).tool(shout(&heard)).build().unwrap();
    let answers = ScriptedLlm::new([Reply::text("first answer"), Reply::text("second answer")]);
    let model = PlanningScript::new([execute([shouting("a", "x")]), respond()], answers)
        .revise(0, respond());
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    run(&runtime, &agent, format!("first {}", "h".repeat(20_000))).await;
    run(&runtime, &agent, "second").await;
    let (_, seen) = model.plans_seen().pop().unwrap();
    assert!(seen.prompt.contains("You tell."));
    assert!(seen.prompt.len() < 12_000, "{}", seen.prompt.len());
    let inputs = inputs(&model).pop().unwrap();
    assert_eq!(inputs["input"]["user_input"], "second");
    let history = inputs["input"]["history"].as_array().unwrap();
    assert_eq!(history.len(), 2);
    assert!(history[0].as_str().unwrap().starts_with("user: first hhh"));
    assert_eq!(history[1], "assistant: first answer");
    assert!(inputs["input"]["history"].to_string().len() < 9_000);
    assert_eq!(
        inputs["info"]["done_plans"],
        json!([]),
        "the second turn has no records of the first"
    );
    // The second answer gets the conversation, but nothing of the first turn's loop.
    let seen = model.answers_seen().pop().unwrap();
    assert_eq!(texts(&seen.messages)[1..], ["first answer", "second"]);
}

/// Weakness 12: the tokens of planning were not counted.
#[tokio::test]
async fn weakness_12_the_tokens_of_plans_are_counted() {
    let usage = helix_agents_core::usage::Usage::new(100, 0);
    let model = script([execute([shouting("a", "x")]).with_usage(usage)]);
    let session = story(&model, PlanOptions::default().max_rounds(1)).await;
    assert_eq!(session.usage().tokens.input_tokens, 110);
}

#[tokio::test]
async fn the_tokens_of_failed_attempts_at_plans_are_counted() {
    let usage = helix_agents_core::usage::Usage::new(100, 0);
    let plan = execute([shouting("a", "x")]);
    let plan = plan.with_failed_attempt(ErrorCode::ProviderStreamCut, usage);
    let session = story(&script([plan]), PlanOptions::default().max_rounds(1)).await;
    assert_eq!(session.usage().tokens.input_tokens, 120);
}

/// Weakness 16: all agents of a process shared one planner and one set of tools.
#[tokio::test]
async fn weakness_16_agents_have_their_own_loop_or_none() {
    let heard = Heard::default();
    let agent = teller().tool(shout(&heard)).build().unwrap();
    let other = helix_agents_core::agent::Agent::builder("other")
        .system_prompt("You do not plan.")
        .model("scripted")
        .tool(shout(&heard))
        .build()
        .unwrap();
    let model = PlanningScript::new(
        [],
        ScriptedLlm::new([Reply::tool_call("shout", json!({ "word": "x" })), Reply::text("done")]),
    );
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (result, _, _) = run(&runtime, &other, "go").await;
    assert_eq!(result.output.unwrap().to_value(), "done");
    assert!(model.plans_seen().is_empty());
    assert_eq!(model.answers_seen()[0].tools, ["shout"]);
}

/// Weakness 17: the order of the tools differed between processes.
#[tokio::test]
async fn weakness_17_tools_are_listed_in_the_agents_order() {
    let names = ["zeta", "alpha", "mid", "beta"];
    let tools = names.map(|name| shout(&Heard::default()).named(name));
    let agent = tools.into_iter().fold(teller(), |agent, tool| agent.tool(tool)).build().unwrap();
    let model = script([respond()]);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    run(&runtime, &agent, "go").await;
    let tools = inputs(&model)[0]["input"]["available_tools"].clone();
    let listed: Vec<_> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(listed, names);
}

/// Weakness 19: concurrent requests shared their logs.
#[tokio::test]
async fn weakness_19_concurrent_sessions_have_their_own_logs() {
    use helix_agents_core::executor::{AgentExecutor, ExecuteOptions};
    let (gate, heard) = (Gate::new(), Heard::default());
    let agent = teller().tool(shout(&heard)).build().unwrap();
    let plan = execute([shouting("a", "x")]);
    let model =
        script([plan.clone().at_gate(&gate), respond()]).revise(0, plan).revise(1, respond());
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let begin = |session| {
        let options = ExecuteOptions::default().session(session);
        runtime.execute(agent.erased(), "go".into(), options)
    };
    let one = begin("one").await.unwrap();
    gate.reached().await;
    let two = begin("two").await.unwrap();
    within(two.result()).await.unwrap();
    gate.open();
    within(one.result()).await.unwrap();
    for handle in [one, two] {
        let session = handle.load_session().await.unwrap();
        assert_eq!(tool_logs(session.transcript()).len(), 1);
    }
}

#[tokio::test]
async fn commands_run_concurrently_within_the_agents_limit_and_records_keep_their_order() {
    use helix_agents_core::tool::{Tool, ToolContext};
    let (running, gate) = (Gate::new(), Gate::new());
    let (arrivals, held) = (running.clone(), gate.clone());
    let wait = Tool::function("wait", "Waits.", move |input: Word, _: ToolContext| {
        let (arrivals, held) = (arrivals.clone(), held.clone());
        async move {
            arrivals.pass().await;
            if input.word == "0" {
                held.pass().await;
            }
            Ok(input.word)
        }
    });
    let command = |word: u32| {
        json!({
            "purpose": word.to_string(), "tool_name": "wait",
            "tool_kwargs": { "word": word.to_string() },
        })
    };
    let agent = teller().tool(wait).tool_concurrency(2).build().unwrap();
    let model = script([execute((0..4).map(command)), respond()]);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let handle = begin(&runtime, &agent, "go").await;
    running.reached_by(2).await;
    // Two calls run, and the others wait.
    assert_eq!(running.arrived(), 2);
    running.open();
    running.reached_by(4).await;
    gate.open();
    within(handle.result()).await.unwrap();
    let session = handle.load_session().await.unwrap();
    let purposes: Vec<_> =
        tool_logs(session.transcript()).into_iter().map(|record| record.purpose).collect();
    assert_eq!(purposes, ["0", "1", "2", "3"]);
}

/// Weakness 20: a tool that panicked failed its siblings.
#[tokio::test]
async fn weakness_20_a_panic_is_a_record_and_siblings_continue() {
    use helix_agents_core::tool::{NoInput, Tool, ToolContext, ToolError};
    let broken = Tool::function("broken", "Breaks.", |_: NoInput, _: ToolContext| async {
        if true {
            panic!("broke down");
        }
        Ok::<_, ToolError>(())
    });
    let agent = teller().tool(broken).tool(shout(&Heard::default())).build().unwrap();
    let commands = [json!({ "purpose": "b", "tool_name": "broken" }), shouting("a", "x")];
    let model = script([execute(commands), respond()]);
    let runtime = runtime(planning(&model, &agent, PlanOptions::default()));
    let (_, session, _) = run(&runtime, &agent, "go").await;
    let records = tool_logs(session.transcript());
    assert!(records[0].error.contains("broke down"), "{}", records[0].error);
    assert!(records[1].success);
}
