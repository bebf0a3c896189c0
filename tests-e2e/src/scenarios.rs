//! What workers do: an agent, its script, and tools that leave a trace.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use helix_agents::agent::{Agent, AgentBuilder, AnyAgent};
use helix_agents::tool::{EffectClass, Tool, ToolContext};
use helix_agents_testkit::scripted::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// One scenario.
pub(crate) struct Scenario {
    pub(crate) agent: AnyAgent,
    pub(crate) llm: ScriptedLlm,
}

#[derive(Debug, Deserialize, JsonSchema)]
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
            erased(
                agent.tool(
                    act("pay", trace)
                        .effect(EffectClass::AtMostOnce)
                        .timeout(std::time::Duration::from_millis(200)),
                ),
            ),
            vec![
                Reply::calls([("pay", word("rent")), ("act", word("one"))]),
                Reply::text("Paid, or not."),
            ],
        ),
        _ => return None,
    };
    Some(Scenario { agent: agent?, llm: ScriptedLlm::new(replies) })
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
    let line = json!({ "call": cx.call(), "attempt": cx.attempt(), "key": cx.idempotency_key() });
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(trace)?;
    file.write_all(format!("{line}\n").as_bytes())
}
