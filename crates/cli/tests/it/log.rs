//! Tests of the log on standard error.

use serde_json::{Value, json};

use crate::support::TestDir;
use crate::support::server::{Turn, model};

const AGENT: &str = r#"
name = "reckoner"
prompt = "You compute."
[output.schema]
type = "object"
required = ["sum"]
properties.sum.type = "integer"
"#;

/// Returns the log events in the log. Each line is a JSON object.
#[track_caller]
fn logged(stderr: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("not JSON: {line}"));
    let lines: Vec<Value> = stderr.lines().map(parse).collect();
    assert!(lines.iter().all(Value::is_object), "{lines:?}");
    lines.into_iter().filter(|line| line["target"] == "helix_agents").collect()
}

#[tokio::test]
async fn with_log_json_each_line_is_an_object_with_the_fields_of_an_event() {
    let dir = TestDir::new();
    let model = model(vec![Turn::finish(json!({ "sum": 42 }))]).await;
    dir.ask(&model);
    dir.write("agent.toml", AGENT);
    let done = dir.helix(&["run", "agent.toml", "secret", "--json", "--log", "json"]).await;
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    let events = logged(&done.stderr);
    let names: Vec<_> = events.iter().map(|event| event["message"].as_str().unwrap()).collect();
    assert_eq!((done.code, names), (0, vec!["run.started", "run.ended"]), "{done:?}");
    for event in &events {
        assert_eq!((&event["level"], &event["agent"]), (&json!("INFO"), &json!("reckoner")));
        assert_eq!((&event["session"], &event["turn"]), (&result["session"], &json!(1)));
        assert_eq!(event["run"], events[0]["run"]);
        assert!(event["timestamp"].is_string() && event["run"].is_string(), "{event}");
        assert_eq!(event["trace_id"].as_str().unwrap().len(), 32);
        assert_eq!(event["span_id"].as_str().unwrap().len(), 16);
    }
    assert_eq!(events[1]["status"], "completed");
    assert!(!done.stderr.contains("secret"), "{done:?}");
}

#[tokio::test]
async fn the_end_of_a_failed_run_is_logged_if_a_format_or_a_filter_is_given() {
    let dir = TestDir::new();
    dir.write("agent.toml", AGENT);
    let run = async |args: &[&str], filter: Option<&str>| {
        let model = model(vec![Turn::finish(json!({ "sum": "many" })); 4]).await;
        dir.ask(&model);
        let mut command = dir.command(&[&["run", "agent.toml", "Compute."], args].concat());
        command.envs(filter.map(|filter| ("HELIX_LOG", filter)));
        let output = command.output().await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let shown = " WARN run.ended session=";
    for (args, filter, is_shown) in [
        (&[][..], None, false),
        (&["--log", "text"], None, true),
        (&[], Some("warn"), true),
        (&["--log", "text"], Some("off"), false),
    ] {
        let stderr = run(args, filter).await;
        assert_eq!(stderr.contains(shown), is_shown, "{args:?} {filter:?}: {stderr}");
    }
    assert_eq!(run(&["--json"], None).await, "");
    assert_eq!(run(&["--json", "--log", "json"], Some("off")).await, "");
    let events = logged(&run(&["--json", "--log", "json"], Some("helix_agents=warn")).await);
    let ends: Vec<_> = events.iter().map(|event| (&event["message"], &event["code"])).collect();
    assert_eq!(ends, [(&json!("run.ended"), &json!("output_invalid"))]);
}
