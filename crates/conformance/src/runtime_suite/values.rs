//! Scenarios for state, arguments and outputs that cannot be read back: they are refused where they arise.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use helix_agents_core::agent::AgentBuilder;
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult, ToolCallView};
use helix_agents_core::session::RunStatus;
use helix_agents_core::tool::{Tool, ToolContext};
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::support::{S, fold, log_of, run, teller};
use super::{RuntimeHarness, World};

/// A state with an enum in serde's default form: an object whose one member is named after the variant.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
struct Doc {
    phase: Phase,
    notes: Vec<String>,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Phase {
    Draft { words: u32 },
    Review { by: String },
    Done { at: u32 },
}

impl Default for Phase {
    fn default() -> Self {
        Self::Draft { words: 0 }
    }
}

#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
struct Score {
    average: f64,
}

fn changes(name: &str, change: fn(&mut Doc)) -> Tool {
    Tool::dynamic(
        name,
        "Changes it.",
        json!({"type": "object"}),
        move |_, cx: ToolContext| async move {
            cx.update_state(change)?;
            Ok(json!("ok"))
        },
    )
}

fn editor() -> AgentBuilder {
    let review = changes("review", |doc| {
        doc.phase = Phase::Review { by: "me".to_owned() };
        doc.notes.push("reviewed".to_owned());
    });
    let done = changes("done", |doc| doc.phase = Phase::Done { at: 1 });
    teller().state::<Doc>().tool(review).tool(done)
}

/// If parallel tools set an enum in the state to different variants, the value of the later call is kept. Merged
/// members would be two variants at once, and the session could not continue.
pub async fn of_an_enum_changed_by_parallel_tools_the_later_calls_value_wins(
    harness: &impl RuntimeHarness,
) {
    let agent = editor().build().unwrap();
    let replies = [
        Reply::calls([("review", json!({})), ("done", json!({}))]),
        Reply::text("one"),
        Reply::text("two"),
    ];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    assert_eq!(run(&*executor, &agent, "go").await.status, RunStatus::Completed);
    let found = fold(harness).await;
    assert_eq!(**found.state(), json!({"phase": {"done": {"at": 1}}, "notes": ["reviewed"]}));
    let log = log_of(harness, &S.into()).await;
    assert_eq!(log.matches("state by merge").count(), 1, "{log}");
    assert_eq!(run(&*executor, &agent, "more").await.status, RunStatus::Completed);
}

struct Averages;

#[async_trait]
impl AgentHooks for Averages {
    async fn after_tool(
        &self,
        cx: &HookContext,
        _: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        cx.update_state(|score: &mut Score| score.average = f64::INFINITY)
    }
}

/// A state change that JSON cannot represent, here a float that is not finite, is refused. The state stays as it was,
/// and the session can continue.
pub async fn a_state_that_does_not_read_back_is_refused(harness: &impl RuntimeHarness) {
    let average = Tool::dynamic(
        "average",
        "Averages.",
        json!({"type": "object"}),
        |_, cx: ToolContext| async move {
            let none: [f64; 0] = [];
            cx.update_state(|score: &mut Score| {
                score.average = none.iter().sum::<f64>() / none.len() as f64;
            })?;
            Ok(json!("ok"))
        },
    );
    let agent = teller()
        .system_prompt_of(|score: Score| format!("The average is {}.", score.average))
        .state::<Score>()
        .tool(average)
        .hooks(Averages)
        .build()
        .unwrap();
    let replies = [Reply::tool_call("average", json!({})), Reply::text("one"), Reply::text("two")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    assert_eq!(run(&*executor, &agent, "go").await.status, RunStatus::Completed);
    let log = log_of(harness, &S.into()).await;
    assert!(log.contains("error state_invalid: the new state was rejected"), "{log}");
    assert_eq!(**fold(harness).await.state(), json!({"average": 0.0}));
    assert_eq!(run(&*executor, &agent, "more").await.status, RunStatus::Completed);
}

/// Arguments that cannot be read back get an error and are not executed: half of a surrogate pair, a number beyond
/// every float, and more levels than a log can hold. An output of this kind is requested again.
pub async fn arguments_that_no_reader_accepts_are_answered_and_not_run(
    harness: &impl RuntimeHarness,
) {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let any = Tool::dynamic("any", "Takes anything.", json!(true), move |input, _| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok(input) }
    });
    let agent = teller().tool(any).output_schema(json!(true)).build().unwrap();
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let bad = [r#"{"text":"\ud83d"}"#, r#"{"n":1e400}"#, &deep];
    let calls = bad.map(|raw| Reply::raw_call("any", raw));
    let outputs = bad.map(|raw| Reply::raw_call("__finish__", &format!(r#"{{"output":{raw}}}"#)));
    let last = Reply::tool_call("__finish__", json!({"output": [1]}));
    let replies = calls.into_iter().chain(outputs.into_iter().take(1)).chain([last]);
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.status, RunStatus::Completed, "{result:?}");
    assert_eq!(result.output.unwrap().to_typed::<Vec<Value>>().unwrap(), [json!(1)]);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    let log = log_of(harness, &S.into()).await;
    let error = "error tool_input_invalid: the arguments cannot be read";
    assert_eq!(log.matches(error).count(), 3, "{log}");
    assert_eq!(
        log.matches("error output_invalid: the output was not accepted").count(),
        1,
        "{log}"
    );
}
