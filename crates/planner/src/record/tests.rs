//! Records, and their results as an answer receives them.

use serde_json::{Value, json};

use super::{ExecutionRecord, normalise_records, to_action_results};
use crate::command::Command;

fn command(purpose: &str) -> Command {
    let command = json!({ "purpose": purpose, "tool_name": "t", "tool_kwargs": { "a": 1 } });
    Command::normalise(&command, "then").unwrap()
}

fn record(value: &Value) -> Value {
    let record = ExecutionRecord::normalise(value, Some(&command("p")), 0);
    json!([record.success, record.result, record.error])
}

#[test]
fn a_bare_value_is_a_result() {
    assert_eq!(record(&json!(7)), json!([true, 7, ""]));
    let whole = ExecutionRecord::normalise(&json!([1]), Some(&command("p")), 0);
    assert_eq!(
        serde_json::to_value(whole).unwrap(),
        json!({
            "purpose": "p", "tool_name": "t", "kwargs": { "a": 1 }, "todo_suggestion": "then",
            "next": "then", "success": true, "result": [1], "error": "",
        })
    );
}

#[test]
fn members_of_the_right_type_override_those_of_the_command() {
    let value = json!({ "purpose": 5, "tool_name": "other", "kwargs": "x", "result": 1 });
    let record = ExecutionRecord::normalise(&value, Some(&command("p")), 0);
    assert_eq!((&*record.purpose, &*record.tool_name), ("p", "other"));
    assert_eq!(record.kwargs, command("p").tool_kwargs);
    let lone = ExecutionRecord::normalise(&json!({ "result": 1 }), None, 2);
    assert_eq!((&*lone.purpose, lone.success), ("tool_call_3", true));
}

#[test]
fn success_is_the_given_value_or_the_absence_of_an_error() {
    assert_eq!(
        record(&json!({ "success": false })),
        json!([false, null, "Tool execution failed."])
    );
    assert_eq!(record(&json!({ "success": false, "result": "no" })), json!([false, "no", "no"]));
    assert_eq!(record(&json!({ "error": "bad" })), json!([false, null, "bad"]));
    assert_eq!(record(&json!({ "result": 1 })), json!([true, 1, ""]));
    assert_eq!(record(&json!({ "success": true, "result": 1 })), json!([true, 1, ""]));
}

/// Weakness 7: errors were recognised by the start of a text.
#[test]
fn weakness_7_text_that_begins_with_error_is_a_result() {
    assert_eq!(
        record(&json!("Error: 404 is a status")),
        json!([true, "Error: 404 is a status", ""])
    );
}

/// Weakness 18: records that an executor lost were dropped silently.
#[test]
fn weakness_18_missing_and_extra_records_are_reported_failures() {
    let commands = [command("a"), command("b")];
    let short = normalise_records(&commands, &[json!(1)]);
    assert_eq!(short.len(), 2);
    assert!(short[0].success);
    assert_eq!(short[1].error, "the executor returned no record for this command");
    let long = normalise_records(&commands, &[json!(1), json!(2), json!(3)]);
    assert_eq!((long.len(), long[2].success, &*long[2].purpose), (3, false, "tool_call_3"));
}

#[test]
fn results_are_keyed_by_purpose_and_failures_include_the_error() {
    let commands = [command("a"), command("a"), command("b"), command("a")];
    let mut records = normalise_records(&commands, &[json!(1), json!(2), json!({}), json!(4)]);
    records[2].purpose = " ".to_owned();
    records[3].success = false;
    records[3].error = "broke".to_owned();
    assert_eq!(
        Value::Object(to_action_results(&records)),
        json!({
            "a": 1, "a (2)": 2, "tool_call_3": null, "a (3)": { "error": "broke", "result": 4 },
        })
    );
}
