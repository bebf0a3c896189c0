//! Commands as planners write them.

use serde_json::json;

use super::Command;

#[test]
fn members_of_the_wrong_type_are_replaced() {
    let command = json!({ "purpose": " ", "tool_name": "search", "tool_kwargs": [1] });
    let command = Command::normalise(&command, "").unwrap();
    assert_eq!(command.purpose, "Use search");
    assert!(command.tool_kwargs.is_empty());
    assert_eq!((&*command.todo_suggestion, &*command.next), ("", ""));
}

#[test]
fn a_commands_own_suggestion_overrides_the_decisions() {
    let todo = |command| Command::normalise(&command, "the decision's").unwrap();
    let own = todo(json!({ "tool_name": "t", "todo_suggestion": "mine", "next": "other" }));
    assert_eq!((&*own.todo_suggestion, &*own.next), ("mine", "mine"));
    let older = todo(json!({ "tool_name": "t", "next": "other" }));
    assert_eq!((&*older.todo_suggestion, &*older.next), ("other", "other"));
    let without = todo(json!({ "tool_name": "t" }));
    assert_eq!(without.todo_suggestion, "the decision's");
}

#[test]
fn a_value_without_a_tool_is_not_a_command() {
    for command in [json!({}), json!({ "tool_name": " " }), json!({ "tool_name": 5 }), json!("x")] {
        assert_eq!(Command::normalise(&command, ""), None, "{command}");
    }
}
