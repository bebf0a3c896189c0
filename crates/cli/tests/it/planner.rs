//! Tests of agent files with a planner.

use serde_json::{Value, json};

use crate::support::TestDir;
use crate::support::server::{Reply, Request, Server, Turn};

const PLANNER: &str = r#"
name = "planner"
prompt = "You compute."
[planner]
model = "mine:large"
[tools.calculator]
"#;

/// The round of a plan request.
fn round(request: &Request) -> Option<u64> {
    let body = request.json();
    let last = body["messages"].as_array()?.last()?["content"].as_str()?.to_owned();
    serde_json::from_str::<Value>(&last).ok()?.pointer("/info/round_index")?.as_u64()
}

fn answer(request: &Request) -> Reply {
    const PLAN: &str = r#"{"next_action": "execute", "execution_commands": [
        {"purpose": "hours", "tool_name": "calculate", "tool_kwargs": {"expression": "366 * 24"}},
        {"purpose": "weeks", "tool_name": "calculate", "tool_kwargs": {"expression": "52 * 2"}}]}"#;
    const ENOUGH: &str = r#"{"next_action": "response", "execution_commands": []}"#;
    let turn = match round(request) {
        Some(0) => Turn::Text(PLAN),
        Some(_) => Turn::Text(ENOUGH),
        None => Turn::Text("8784 hours."),
    };
    turn.reply()
}

#[tokio::test]
async fn rounds_are_steps_and_plans_use_the_planner_model() {
    let dir = TestDir::new();
    let server = Server::start(answer).await;
    dir.ask(&server);
    dir.write("agent.toml", PLANNER);
    let done = dir.helix(&["run", "agent.toml", "How many hours?", "--json"]).await.json();
    assert_eq!((&done["status"], &done["output"]), (&"completed".into(), &"8784 hours.".into()));
    assert_eq!((&done["steps"], &done["tool_calls"]), (&json!(3), &json!(2)));
    let models: Vec<_> =
        server.requests().iter().map(|request| request.json()["model"].clone()).collect();
    assert_eq!(models, ["large", "large", "small"]);
    let answer = server.requests().pop().unwrap().json().to_string();
    assert!(answer.contains("8784"), "{answer}");

    // A resume in another process plans, too.
    let checkpoints = dir.helix(&["sessions", "checkpoints", "--last", "--json"]).await.json();
    let last = checkpoints[2]["version"].to_string();
    let back = ["resume", "--last", "--checkpoint", &last, "--message", "Once more.", "--json"];
    let again = dir.helix(&back).await.json();
    assert_eq!((&again["status"], &again["tool_calls"]), (&"completed".into(), &json!(4)));
}

#[tokio::test]
async fn plans_are_described_in_the_text_output() {
    let dir = TestDir::new();
    let server = Server::start(answer).await;
    dir.ask(&server);
    dir.write("agent.toml", PLANNER);
    let done = dir.helix(&["run", "agent.toml", "How many hours?"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let shown = format!("{}{}", done.stdout, done.stderr);
    assert!(shown.contains("plan of round 1: hours, weeks"), "{done:?}");
    assert!(shown.contains("no more plans"), "{done:?}");
    assert!(!shown.contains("execution_commands") && !shown.contains("tool_logs"), "{done:?}");
}

#[tokio::test]
async fn an_unavailable_planner_model_is_an_error_before_the_start() {
    let dir = TestDir::new();
    let server = Server::start(answer).await;
    dir.ask(&server);
    dir.write("agent.toml", PLANNER.replace("mine:large", "other:large"));
    let refused = dir.helix(&["run", "agent.toml", "How many hours?", "--json"]).await;
    assert_eq!((refused.code, &refused.json_error()["code"]), (1, &"model_unknown".into()));
    assert!(!dir.path("helix.db").exists());
}
