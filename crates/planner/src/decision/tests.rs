//! Example decisions and their normal forms.

use serde_json::{Value, json};

use super::{Decision, NextAction};

/// Checks the next action and the number of commands.
#[track_caller]
fn check(decision: &Value, next_action: NextAction, commands: usize) {
    let found = Decision::normalise(decision);
    assert_eq!(found.next_action, next_action, "{decision}");
    assert_eq!(found.execution_commands.len(), commands, "{decision}");
    assert_eq!(found.use_tool(), next_action == NextAction::Execute, "{decision}");
}

#[test]
fn the_golden_vectors_of_decisions() {
    use NextAction::{Execute, Response};
    let c = || json!({ "tool_name": "t", "purpose": "p" });
    for nothing in [json!(null), json!("x"), json!([]), json!({})] {
        check(&nothing, Response, 0);
    }
    check(&json!({ "next_action": "EXECUTE", "tool_command": c() }), Execute, 1);
    check(&json!({ "next_action": " execute ", "tool_commands": [c()] }), Execute, 1);
    let mixed = json!([c(), { "tool_name": " " }, { "tool_name": 5 }, "x"]);
    check(&json!({ "next_action": "weird", "execution_commands": mixed }), Execute, 1);
    check(&json!({ "execution_commands": [], "tool_commands": [c()] }), Response, 0);
    check(&json!({ "execution_commands": [], "tool_command": c() }), Execute, 1);
    check(&json!({ "execution_commands": null, "tool_commands": [c()] }), Execute, 1);
    check(&json!({ "next_action": "response", "execution_commands": [c()] }), Response, 0);
    check(&json!({ "use_tool": false, "tool_commands": [c()] }), Response, 0);
    check(&json!({ "use_tool": "true", "tool_commands": [c()] }), Execute, 1);
    check(&json!({ "next_action": "execute", "execution_commands": [] }), Response, 0);
    let none = json!([{ "tool_name": " " }, "x"]);
    check(&json!({ "next_action": "execute", "execution_commands": none }), Response, 0);
}

#[test]
fn equal_commands_are_all_kept_in_order() {
    let c = json!({ "tool_name": "t", "tool_kwargs": { "a": 1 } });
    check(&json!({ "execution_commands": [c, c, c] }), NextAction::Execute, 3);
}

#[test]
fn the_normalised_form_has_both_names_of_the_list() {
    let decision = json!({ "next": "then", "tool_command": { "tool_name": "t" } });
    let command = json!({
        "purpose": "Use t", "tool_name": "t", "tool_kwargs": {},
        "todo_suggestion": "then", "next": "then",
    });
    assert_eq!(
        Decision::normalise(&decision).to_value(),
        json!({
            "next_action": "execute", "use_tool": true, "next": "then",
            "execution_commands": [command], "tool_commands": [command],
        })
    );
}
