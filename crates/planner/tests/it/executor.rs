//! Custom executors.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use helix_agents_core::agent::Agent;
use helix_agents_core::tool::{EffectClass, NoInput, Tool, ToolContext, ToolError};
use helix_agents_planner::{
    CommandExecutor, CommandTool, EXECUTE_COMMANDS, Execution, ExecutionRecord, PlanOptions,
    PlanningLlm, tool_logs,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{
    Heard, chunks, custom, execute, inputs, planning, respond, run, runtime, script, shout,
    shouting, teller,
};

/// Calls the tools one after another, and loses as many records as requested.
#[derive(Debug, Default)]
struct InTurn {
    loses: usize,
    rounds: Mutex<Vec<u32>>,
}

#[async_trait]
impl CommandExecutor for InTurn {
    async fn execute(&self, execution: Execution<'_>) -> Result<Vec<Value>, ToolError> {
        self.rounds.lock().unwrap().push(execution.round_index);
        let mut records = Vec::new();
        for command in execution.commands.iter().skip(self.loses) {
            let outcome = execution.tools.call(&command.tool_name, &command.tool_kwargs).await;
            let outcome = outcome.map_err(|error| error.message().to_owned());
            records.push(serde_json::to_value(ExecutionRecord::of(command, outcome))?);
        }
        Ok(records)
    }
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
struct Notes {
    notes: Vec<String>,
}

type Keys = Arc<Mutex<Vec<String>>>;

/// Notes its idempotency key, and changes the state.
fn note(keys: &Keys) -> Tool {
    let keys = Arc::clone(keys);
    Tool::function("note", "Notes.", move |_: NoInput, cx: ToolContext| {
        keys.lock().unwrap().push(cx.idempotency_key());
        async move {
            cx.update_state(|state: &mut Notes| state.notes.push("noted".to_owned()))?;
            cx.emit("noted", &1)?;
            Ok(())
        }
    })
}

fn broken() -> Tool {
    Tool::function("broken", "Breaks.", |_: NoInput, _: ToolContext| async {
        if true {
            panic!("broke down");
        }
        Ok::<_, ToolError>(())
    })
}

fn agent(commands: &CommandTool) -> Agent {
    teller().state::<Notes>().tool(commands.tool()).build().unwrap()
}

#[tokio::test]
async fn it_executes_a_round_as_one_recorded_call() {
    let (heard, keys) = (Heard::default(), Keys::default());
    let tools = [shout(&heard), note(&keys), broken()];
    let commands = CommandTool::new(InTurn::default(), tools).unwrap();
    let agent = agent(&commands);
    let plan = execute([
        shouting("a", "x"),
        json!({ "purpose": "b", "tool_name": "note" }),
        json!({ "purpose": "b", "tool_name": "note" }),
        json!({ "purpose": "c", "tool_name": "broken" }),
        json!({ "purpose": "d", "tool_name": "shout" }),
        json!({ "purpose": "e", "tool_name": "whisper" }),
    ]);
    let model = script([plan, respond()]);
    let options = PlanOptions::default().executor(Some(commands));
    let runtime = runtime(planning(&model, &agent, options));
    let (result, session, handle) = run(&runtime, &agent, "go").await;
    assert_eq!(result.output.unwrap().to_value(), "done");
    let records = tool_logs(session.transcript());
    let outcomes: Vec<_> = records.iter().map(|record| (record.success, &*record.error)).collect();
    assert_eq!(outcomes[0], (true, ""));
    assert_eq!(records[0].result, "X");
    assert_eq!((outcomes[1], outcomes[2]), ((true, ""), (true, "")));
    assert_eq!(outcomes[3], (false, "the tool panicked: broke down"));
    assert!(outcomes[4].1.starts_with("the arguments do not match"), "{}", outcomes[4].1);
    assert_eq!(outcomes[5].1, "there is no tool `whisper`; the tools are: shout, note, broken");
    assert_eq!(session.state()["notes"], json!(["noted", "noted"]));
    let keys = keys.lock().unwrap().clone();
    assert_ne!(keys[0], keys[1], "equal calls are separate calls");
    assert_eq!(session.usage().tool_calls, 1);
    assert_eq!(custom(&chunks(&handle).await, "noted").len(), 2);
    let tools = &inputs(&model)[0]["input"]["available_tools"];
    assert_eq!(tools.as_array().unwrap().len(), 3, "{tools}");
}

/// Weakness 18: lost records were dropped silently.
#[tokio::test]
async fn weakness_18_a_command_without_a_record_is_reported() {
    let heard = Heard::default();
    let executor = InTurn { loses: 1, ..InTurn::default() };
    let commands = CommandTool::new(executor, [shout(&heard)]).unwrap();
    let agent = agent(&commands);
    let model = script([execute([shouting("a", "x"), shouting("b", "y")]), respond()]);
    let runtime =
        runtime(planning(&model, &agent, PlanOptions::default().executor(Some(commands))));
    let (_, session, _) = run(&runtime, &agent, "go").await;
    let records = tool_logs(session.transcript());
    assert_eq!(records.len(), 2);
    assert_eq!(records[1].error, "the executor returned no record for this command");
}

#[derive(Debug)]
struct Failing;

#[async_trait]
impl CommandExecutor for Failing {
    async fn execute(&self, _: Execution<'_>) -> Result<Vec<Value>, ToolError> {
        Err(ToolError::new("the queue is down"))
    }
}

#[tokio::test]
async fn its_failure_fails_every_command() {
    let commands = CommandTool::new(Failing, [shout(&Heard::default())]).unwrap();
    let agent = agent(&commands);
    let model = script([execute([shouting("a", "x"), shouting("b", "y")]), respond()]);
    let runtime =
        runtime(planning(&model, &agent, PlanOptions::default().executor(Some(commands))));
    let (_, session, _) = run(&runtime, &agent, "go").await;
    let records = tool_logs(session.transcript());
    let errors: Vec<_> = records.iter().map(|record| &*record.error).collect();
    assert_eq!(errors, ["the queue is down"; 2]);
}

#[test]
fn a_round_has_the_strictest_effect_class_of_its_tools() {
    let once = shout(&Heard::default()).effect(EffectClass::AtMostOnce);
    let commands = CommandTool::new(Failing, [note(&Keys::default()), once]).unwrap();
    assert_eq!(commands.tool().effect_class(), EffectClass::AtMostOnce);
    let commands = CommandTool::new(Failing, [note(&Keys::default())]).unwrap();
    assert_eq!(commands.tool().effect_class(), EffectClass::Idempotent);
    assert_eq!(commands.tool().name(), EXECUTE_COMMANDS);
}

#[test]
fn invalid_executors_are_rejected() {
    let twice = [note(&Keys::default()), note(&Keys::default())];
    assert!(CommandTool::new(Failing, twice).is_err());
    let commands = CommandTool::new(Failing, [note(&Keys::default())]).unwrap();
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let options = PlanOptions::default().executor(Some(commands));
    let error = PlanningLlm::new(script([])).plan(agent.definition(), options).unwrap_err();
    assert!(error.message().contains("CommandTool::tool"), "{error}");
}
