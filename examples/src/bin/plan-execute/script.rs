//! The plans and the answer of the scripted model.

use helix_agents_test::{PlanningScript, Reply, ScriptedLlm};
use serde_json::{Value, json};

pub(crate) fn script() -> PlanningScript {
    let command = |purpose, tool, city, todo| {
        json!({
            "purpose": purpose, "tool_name": tool, "tool_kwargs": { "city": city },
            "todo_suggestion": todo,
        })
    };
    let execute = |commands: Vec<Value>| {
        Reply::text(json!({ "next_action": "execute", "execution_commands": commands }).to_string())
    };
    let compare = "choose the drier city";
    PlanningScript::new(
        [
            execute(vec![
                command("weather in Bergen", "weather", "Bergen", compare),
                command("weather in Oslo", "weather", "Oslo", compare),
            ]),
            execute(vec![command("trains to Oslo", "trains", "Oslo", "answer")]),
            Reply::text(json!({ "next_action": "response", "execution_commands": [] }).to_string()),
        ],
        ScriptedLlm::new([Reply::text(
            "Oslo: it is sunny there, and it rains in Bergen. Take the 08:25.",
        )]),
    )
}
