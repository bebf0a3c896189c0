//! What is told of plans.

use super::told;

fn plan(data: &str) -> String {
    told("plan", data).unwrap().unwrap()
}

#[test]
fn a_plan_is_told_by_what_its_calls_are_for() {
    let calls = r#"[{"purpose": "hours", "tool_name": "calculate"}, {"tool_name": "time"}]"#;
    let all = format!(r#"{{"round_index": 1, "execution_commands": {calls}}}"#);
    assert_eq!(plan(&all), "plan of round 2: hours, time");
    let none = r#"{"round_index": 1, "execution_commands": [], "problem": "malformed"}"#;
    assert_eq!(plan(none), "the plan of round 2 cannot be used");
}

#[test]
fn the_last_one_says_why_there_are_no_more() {
    let last = |stop| {
        plan(&format!(r#"{{"round_index": 3, "execution_commands": [], "stopped": "{stop}"}}"#))
    };
    assert_eq!(last("response"), "no more plans");
    assert_eq!(last("timeout"), "no more plans: the time for plans is up");
}

#[test]
fn chunks_of_others_are_not_taken_for_plans() {
    assert_eq!(told("plan", r#"{"of": "mine"}"#), None);
    assert_eq!(told("progress", "1"), None);
    assert_eq!(told("tool_logs", "{}"), Some(None));
}
