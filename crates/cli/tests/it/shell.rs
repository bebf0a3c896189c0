//! The shell tool: commands that run if somebody approved them, and no others.

use serde_json::{Value, json};

use crate::support::Place;
use crate::support::server::{Server, Turn, model};

const AGENT: &str = r#"
name = "worker"
prompt = "You work."
[tools.shell]
allow = ["echo", "sh write.sh"]
"#;

async fn run(place: &Place, command: Value) -> (Server, i32) {
    let model = model(vec![Turn::call("shell", command), Turn::Text("Done.")]).await;
    place.ask(&model);
    place.write("agent.toml", AGENT);
    place.write("write.sh", "echo ran >> ran.txt; echo \"$HOME|$SECRET|$1\"; exit 3\n");
    let mut run = place.command(&["run", "agent.toml", "Work.", "--json"]);
    let done = run.env("SECRET", "key").output().await.unwrap();
    (model, done.status.code().unwrap())
}

/// What the model was told of the command.
fn result(model: &Server) -> Value {
    let messages = model.requests().last().unwrap().json()["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["role"], "tool", "{last}");
    serde_json::from_str(last["content"].as_str().unwrap()).unwrap()
}

async fn approve(place: &Place, more: &[&str]) {
    let command = [&["approvals"], more, &["1.0", "--last", "--resume", "--json"]].concat();
    let mut command = place.command(&command);
    let done = command.env("SECRET", "key").env("HOME", "/nowhere").output().await.unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
}

#[tokio::test]
async fn a_command_runs_when_it_is_approved_and_sees_no_keys() {
    let place = Place::new();
    let command = json!({ "program": "sh", "arguments": ["write.sh", "$(id)"] });
    let (model, code) = run(&place, command).await;
    assert_eq!((code, place.path("ran.txt").exists()), (3, false));
    approve(&place, &["approve"]).await;
    let expected = json!({ "exit_code": 3, "stdout": "/nowhere||$(id)\n", "stderr": "" });
    assert_eq!(result(&model), expected);
    assert_eq!(std::fs::read_to_string(place.path("ran.txt")).unwrap(), "ran\n");
}

#[tokio::test]
async fn a_command_that_is_not_listed_is_refused_without_asking_and_so_is_an_edit_to_one() {
    let place = Place::new();
    let other = json!({ "program": "sh", "arguments": ["-c", "echo ran > ran.txt"] });
    let (model, code) = run(&place, other.clone()).await;
    assert_eq!(code, 0);
    let told = result(&model)["error"].to_string();
    assert!(told.contains("not allowed, and was not run; these are"), "{told}");

    let place = Place::new();
    let (model, code) = run(&place, json!({ "program": "echo", "arguments": ["hi"] })).await;
    assert_eq!(code, 3);
    approve(&place, &["edit", "--arguments", &other.to_string()]).await;
    assert!(result(&model)["error"].to_string().contains("not allowed"), "{}", result(&model));
    assert!(!place.path("ran.txt").exists());
}
