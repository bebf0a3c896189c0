//! What workers do: an agent, its script, and tools that leave a trace.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helix_agents::agent::{Agent, AgentBuilder, AnyAgent, CompanionMode};
use helix_agents::error::Error;
use helix_agents::event::PendingKind;
use helix_agents::session::{PendingView, Submission};
use helix_agents::tool::{EffectClass, Tool, ToolContext};
use helix_agents_testkit::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How long calls take at most that must not run twice.
const SHORT: Duration = Duration::from_millis(200);

/// One scenario.
pub(crate) struct Scenario {
    pub(crate) agent: AnyAgent,
    pub(crate) llm: RoutingScriptedLlm,
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Word {
    word: String,
}

#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
struct Words {
    words: Vec<String>,
}

/// The scenario of that name.
pub(crate) fn named(name: &str, trace: &Path) -> Option<Scenario> {
    let word = |word: &str| json!({ "word": word });
    let agent = Agent::builder("worker").system_prompt("You work.").model("scripted");
    let agent = agent.state::<Words>().tool(act("act", trace));
    let paying = || act("pay", trace).requires_approval().timeout(SHORT);
    let act_and_report =
        [Reply::tool_call("act", word("below")), Reply::finish(json!({"word": "so"}))];
    let pay_and_report =
        [Reply::tool_call("pay", word("rent")), Reply::finish(json!({"word": "paid"}))];
    let mut below = ScriptedLlm::new(act_and_report.clone());
    let (agent, replies) = match name {
        "plain" => (
            erased(agent),
            vec![
                Reply::tool_call("act", word("one")).with_text("First one thing, "),
                Reply::tool_call("act", word("two")).with_text("then another."),
                Reply::text("Both are done."),
            ],
        ),
        "parallel" => (
            erased(agent),
            vec![
                Reply::calls([("act", word("one")), ("act", word("two")), ("act", word("three"))]),
                Reply::text("All three are done."),
            ],
        ),
        "finish" => (
            erased(agent.tool(act("submit", trace).finish_with())),
            vec![Reply::calls([("submit", word("end")), ("act", word("one"))])],
        ),
        "at_most_once" => (
            erased(agent.tool(act("pay", trace).effect(EffectClass::AtMostOnce).timeout(SHORT))),
            vec![
                Reply::calls([("pay", word("rent")), ("act", word("one"))]),
                Reply::text("Paid, or not."),
            ],
        ),
        "people" => (
            erased(
                agent
                    .tool(paying())
                    .tool(act("stamp", trace).requires_approval().effect(EffectClass::Idempotent))
                    .tool(Tool::client::<Word>("ask", "Asks a person.")),
            ),
            vec![
                Reply::calls([
                    ("pay", word("rent")),
                    ("stamp", word("paper")),
                    ("pay", word("wine")),
                    ("ask", word("colour")),
                    ("act", word("one")),
                ]),
                Reply::text("All is settled."),
            ],
        ),
        "child" => (
            erased(agent.sub_agent(&helper(trace, None)?)),
            vec![
                Reply::calls([("subagent__helper", message()), ("act", word("one"))]),
                Reply::text("It is done."),
            ],
        ),
        "child_waits" => {
            below = ScriptedLlm::new(pay_and_report);
            let helper = helper(trace, Some(paying()))?;
            (
                erased(agent.sub_agent(&helper)),
                vec![
                    Reply::calls([("subagent__helper", message()), ("act", word("one"))]),
                    Reply::text("It is paid."),
                ],
            )
        }
        "companion" => {
            below = ScriptedLlm::new(act_and_report.into_iter().chain(pay_and_report));
            let spawn = json!({"agent": "helper", "name": "rex", "message": "work"});
            let send = json!({"name": "rex", "message": "once more"});
            let helper = helper(trace, Some(paying()))?;
            let replies = vec![
                Reply::tool_call("companion__spawnAgent", spawn),
                Reply::tool_call("companion__sendMessage", send),
                Reply::text("Well."),
            ];
            (erased(agent.companion(&helper, CompanionMode::Blocking)), replies)
        }
        _ => return None,
    };
    let llm = RoutingScriptedLlm::new().agent("worker", ScriptedLlm::new(replies));
    Some(Scenario { agent: agent?, llm: llm.agent("helper", below) })
}

fn message() -> Value {
    json!({"message": "work"})
}

fn helper(trace: &Path, tool: Option<Tool>) -> Option<Agent<Words, Word>> {
    let helper = Agent::builder("helper").description("Helps.").system_prompt("You help.");
    let helper = helper.model("scripted").state::<Words>().tool(act("act", trace));
    let helper = match tool {
        Some(tool) => helper.tool(tool),
        None => helper,
    };
    helper.output::<Word>().build().ok()
}

/// What people answer: always the same.
pub(crate) fn answer(pending: &PendingView) -> Result<Submission, Error> {
    let call = pending.reference();
    let request = format!("answer to {call}");
    let submission = match pending.pending.kind {
        PendingKind::Client => Submission::result(call, &json!({"word": "blue"}))?,
        _ if pending.arguments.text().contains("wine") => {
            Submission::deny(call, Some("no wine".to_owned()))
        }
        _ => Submission::approve(call),
    };
    Ok(submission.request(request))
}

fn erased<S, O>(agent: AgentBuilder<S, O>) -> Option<AnyAgent> {
    agent.build().ok().map(|agent| agent.erased())
}

/// A tool that notes its word in the state, and each of its executions in the trace file.
fn act(name: &str, trace: &Path) -> Tool {
    let trace: Arc<PathBuf> = Arc::new(trace.to_owned());
    Tool::function(name, "Acts on a word.", move |input: Word, cx: ToolContext| {
        let trace = Arc::clone(&trace);
        async move {
            leave_trace(&trace, &cx)?;
            cx.progress(format!("acting on {}", input.word), None);
            cx.update_state(|state: &mut Words| state.words.push(input.word.clone()))?;
            Ok(format!("acted on {}", input.word))
        }
    })
}

fn leave_trace(trace: &Path, cx: &ToolContext) -> std::io::Result<()> {
    let call = format!("{}#{}", cx.session(), cx.call());
    let line = json!({ "call": call, "attempt": cx.attempt(), "key": cx.idempotency_key() });
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(trace)?;
    file.write_all(format!("{line}\n").as_bytes())
}
