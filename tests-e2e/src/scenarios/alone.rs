//! Scenarios of one agent without others: tools, ends, and what follows them.

use std::path::Path;

use helix_agents::budget::Budget;
use helix_agents::planner::{PlanOptions, PlanningLlm};
use helix_agents::tool::EffectClass;
use helix_agents_test::{PlanningScript, Reply, ScriptedLlm};
use serde_json::json;

use super::{SHORT_TIMEOUT, Scenario, Sequel, act, word, worker};

pub(super) fn named(name: &str, trace: &Path) -> Option<Scenario> {
    match name {
        "plain" => plain(trace),
        "fork" => Some(plain(trace)?.then(Sequel::Fork)),
        "rewind" => Some(plain(trace)?.then(Sequel::Rewind)),
        // Each reply uses fifteen tokens.
        "budget" => {
            let agent = worker(trace).budget(Budget::new().tokens(30));
            Some(Scenario::scripted(agent, two_things())?.then(Sequel::MoreBudget))
        }
        "parallel" => {
            let calls = [("act", word("one")), ("act", word("two")), ("act", word("three"))];
            let replies = [Reply::calls(calls), Reply::text("All three are done.")];
            Scenario::scripted(worker(trace), replies)
        }
        "finish" => {
            let agent = worker(trace).tool(act("submit", trace).finish_with());
            let replies = [Reply::calls([("submit", word("end")), ("act", word("one"))])];
            Scenario::scripted(agent, replies)
        }
        "at_most_once" => {
            let pay = act("pay", trace).effect(EffectClass::AtMostOnce).timeout(SHORT_TIMEOUT);
            let replies = [
                Reply::calls([("pay", word("rent")), ("act", word("one"))]),
                Reply::text("Paid, or not."),
            ];
            Scenario::scripted(worker(trace).tool(pay), replies)
        }
        "planner" => planner(trace),
        _ => None,
    }
}

fn plain(trace: &Path) -> Option<Scenario> {
    Scenario::scripted(worker(trace), two_things())
}

pub(super) fn two_things() -> [Reply; 3] {
    [
        Reply::tool_call("act", word("one")).with_text("First one thing, "),
        Reply::tool_call("act", word("two")).with_text("then another."),
        Reply::text("Both are done."),
    ]
}

/// A planner with two rounds, and the answer.
fn planner(trace: &Path) -> Option<Scenario> {
    let command = |word: &str| {
        json!({
            "purpose": word, "tool_name": "act", "tool_kwargs": { "word": word },
            "todo_suggestion": "go on",
        })
    };
    let plan = |commands: &[&str]| {
        let next = if commands.is_empty() { "response" } else { "execute" };
        let commands: Vec<_> = commands.iter().copied().map(command).collect();
        Reply::text(json!({ "next_action": next, "execution_commands": commands }).to_string())
    };
    let plans = [plan(&["one", "two"]), plan(&["three"]), plan(&[])];
    let model = PlanningScript::new(plans, ScriptedLlm::new([Reply::text("It is planned.")]));
    let agent = worker(trace).build().ok()?.erased();
    let llm = PlanningLlm::new(model).plan(&agent, PlanOptions::default()).ok()?;
    Scenario::new(worker(trace), llm)
}
