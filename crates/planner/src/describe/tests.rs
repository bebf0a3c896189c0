//! Tests of the descriptions of plans.

use super::describe_plan;

fn plan(data: &str) -> String {
    describe_plan(data).unwrap()
}

#[test]
fn a_plan_is_described_by_the_purposes_of_its_calls() {
    let calls = r#"[{"purpose": "hours", "tool_name": "calculate"}, {"tool_name": "time"}]"#;
    let all = format!(r#"{{"round_index": 1, "execution_commands": {calls}}}"#);
    assert_eq!(plan(&all), "plan of round 2: hours, time");
    let none = r#"{"round_index": 1, "execution_commands": [], "problem": "malformed"}"#;
    assert_eq!(plan(none), "the plan of round 2 is not usable");
}

#[test]
fn the_last_plan_has_the_reason() {
    let last = |stop| {
        plan(&format!(r#"{{"round_index": 3, "execution_commands": [], "stopped": "{stop}"}}"#))
    };
    assert_eq!(last("response"), "no more plans");
    assert_eq!(last("timeout"), "no more plans: the planning timeout has expired");
}

#[test]
fn other_data_are_not_plans() {
    assert_eq!(describe_plan(r#"{"of": "mine"}"#), None);
    assert_eq!(describe_plan("1"), None);
}
