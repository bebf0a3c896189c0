//! Scenarios with sub-agents and companions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helix_agents::agent::{Agent, CompanionMode};
use helix_agents::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm};
use serde_json::{Value, json};

use super::{Scenario, Word, Words, act, leave_trace, paying, word, worker};

pub(super) fn named(name: &str, trace: &Path) -> Option<Scenario> {
    let act_and_report =
        [Reply::tool_call("act", word("below")), Reply::finish(json!({"word": "so"}))];
    let pay_and_report =
        [Reply::tool_call("pay", word("rent")), Reply::finish(json!({"word": "paid"}))];
    let (agent, replies, below) = match name {
        "child" => {
            let agent = worker(trace).sub_agent(&helper("helper", trace, None)?);
            let calls = [("subagent__helper", message()), ("act", word("one"))];
            let replies = vec![Reply::calls(calls), Reply::text("It is done.")];
            (agent, replies, ScriptedLlm::new(act_and_report))
        }
        "child_waits" => {
            let agent = worker(trace).sub_agent(&helper("helper", trace, Some(paying(trace)))?);
            let calls = [("subagent__helper", message()), ("act", word("one"))];
            let replies = vec![Reply::calls(calls), Reply::text("It is paid.")];
            (agent, replies, ScriptedLlm::new(pay_and_report))
        }
        "companion" => {
            let helper = helper("helper", trace, Some(paying(trace)))?;
            let agent = worker(trace).companion(&helper, CompanionMode::Blocking);
            let send = json!({"name": "rex", "message": "once more"});
            let replies = vec![
                Reply::tool_call("companion__spawnAgent", spawn()),
                Reply::tool_call("companion__sendMessage", send),
                Reply::text("Well."),
            ];
            (agent, replies, ScriptedLlm::new(act_and_report.into_iter().chain(pay_and_report)))
        }
        "companion_beside" => {
            let helper = helper("helper", trace, Some(act_late(trace)))?;
            let ask = Tool::client::<Word>("ask", "Asks a person.");
            let agent = worker(trace).tool(ask).companion(&helper, CompanionMode::NonBlocking);
            let replies = vec![
                Reply::tool_call("companion__spawnAgent", spawn()),
                Reply::calls([("act", word("meanwhile")), ("ask", word("colour"))]),
                Reply::text("Well."),
            ];
            let late = [Reply::tool_call("late", word("below")), Reply::finish(word("so"))];
            (agent, replies, ScriptedLlm::new(late))
        }
        "family" => return family(trace),
        _ => return None,
    };
    let llm = RoutingScriptedLlm::new().agent("worker", ScriptedLlm::new(replies));
    Scenario::new(agent, llm.agent("helper", below))
}

/// A companion that is messaged again after its answer, and meanwhile a child and its parent that both wait for users.
fn family(trace: &Path) -> Option<Scenario> {
    let ask = Tool::client::<Word>("ask", "Asks a person.");
    let agent = worker(trace)
        .tool(ask)
        .sub_agent(&helper("helper", trace, Some(paying(trace)))?)
        .companion(&helper("guide", trace, None)?, CompanionMode::Blocking);
    let spawn = json!({"agent": "guide", "name": "rex", "message": "work"});
    let send = json!({"name": "rex", "message": "once more"});
    let calls = [("subagent__helper", message()), ("ask", word("colour")), ("act", word("one"))];
    let worker = ScriptedLlm::new([
        Reply::tool_call("companion__spawnAgent", spawn),
        Reply::calls(calls),
        Reply::tool_call("companion__sendMessage", send),
        Reply::text("All is settled."),
    ]);
    let helper =
        ScriptedLlm::new([Reply::tool_call("pay", word("rent")), Reply::finish(word("paid"))]);
    let guide = |what: &str| [Reply::tool_call("act", word(what)), Reply::finish(word(what))];
    let guide = ScriptedLlm::new(guide("here").into_iter().chain(guide("there")));
    let llm = RoutingScriptedLlm::new().agent("worker", worker);
    Scenario::new(agent, llm.agent("helper", helper).agent("guide", guide))
}

fn message() -> Value {
    json!({"message": "work"})
}

fn spawn() -> Value {
    json!({"agent": "helper", "name": "rex", "message": "work"})
}

fn helper(name: &str, trace: &Path, tool: Option<Tool>) -> Option<Agent<Word>> {
    let helper = Agent::builder(name).description("Helps.").system_prompt("You help.");
    let helper = helper.model("scripted").state::<Words>().tool(act("act", trace));
    let helper = match tool {
        Some(tool) => helper.tool(tool),
        None => helper,
    };
    helper.output::<Word>().build().ok()
}

/// A tool that acts once its parent has reached its second step. There the parent cannot receive the notice before it
/// has an answer, so the log is always the same.
fn act_late(trace: &Path) -> Tool {
    let trace: Arc<PathBuf> = Arc::new(trace.to_owned());
    Tool::function("late", "Acts late.", move |input: Word, cx: ToolContext| {
        let trace = Arc::clone(&trace);
        async move {
            while !std::fs::read_to_string(&*trace).unwrap_or_default().contains("story#2.") {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            leave_trace(&trace, &cx)?;
            Ok::<_, ToolError>(format!("acted late on {}", input.word))
        }
    })
}
