//! Scenarios of calls that wait for users, and of calls whose deadlines pass.

use std::path::Path;
use std::time::Duration;

use helix_agents::tool::{EffectClass, Tool};
use helix_agents_test::Reply;

use super::{Scenario, Word, act, paying, word, worker};

/// The deadline of the calls that are not answered in time.
const EXPIRES_AT_ONCE: Duration = Duration::from_millis(1);

pub(super) fn named(name: &str, trace: &Path) -> Option<Scenario> {
    let ask = |name: &str| Tool::client::<Word>(name, "Asks a person.");
    match name {
        "people" => {
            let stamp = act("stamp", trace).requires_approval().effect(EffectClass::Idempotent);
            let agent = worker(trace).tool(paying(trace)).tool(stamp).tool(ask("ask"));
            let replies = [
                Reply::calls([
                    ("pay", word("rent")),
                    ("stamp", word("paper")),
                    ("pay", word("wine")),
                    ("ask", word("colour")),
                    ("act", word("one")),
                ]),
                Reply::text("All is settled."),
            ];
            Scenario::scripted(agent, replies)
        }
        "deadlines" => {
            let agent = worker(trace)
                .tool(paying(trace).deadline(EXPIRES_AT_ONCE))
                .tool(ask("hurry").deadline(EXPIRES_AT_ONCE))
                .tool(ask("ask"));
            let replies = [
                Reply::calls([
                    ("hurry", word("time")),
                    ("ask", word("colour")),
                    ("pay", word("rent")),
                    ("act", word("one")),
                ]),
                Reply::tool_call("pay", word("rent")),
                Reply::text("Some of it is settled."),
            ];
            Scenario::scripted(agent, replies)
        }
        _ => None,
    }
}
