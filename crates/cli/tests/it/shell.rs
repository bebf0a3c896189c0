//! The shell tool: commands that run if somebody approved them, and no others.

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::server::{Server, Turn, model};
use crate::support::{Place, Running};

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

/// A place in which an approved command is under way that takes its time, and its process.
async fn under_way(place: &Place, more: &str) -> (Server, Running, Pid) {
    let command = json!({ "program": "sh", "arguments": ["write.sh"] });
    let (model, code) = run(place, command).await;
    assert_eq!(code, 3);
    place.write("agent.toml", format!("{AGENT}{more}"));
    place.write("write.sh", "echo ran >> ran.txt; echo $$ > pid.new; mv pid.new pid; sleep 600\n");
    let running = place.start(&["approvals", "approve", "1.0", "--last", "--resume"]);
    let id = loop {
        match std::fs::read_to_string(place.path("pid")) {
            Ok(id) => break id.trim().parse().unwrap(),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    (model, running, Pid::from_raw(id).unwrap())
}

/// Whether any process of a group is left.
fn is_there(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group).is_ok()
}

#[tokio::test]
async fn an_aborted_run_takes_its_command_along() {
    let place = Place::new();
    let (_model, running, command) = under_way(&place, "").await;
    assert!(is_there(command));
    assert_eq!(place.helix(&["abort", "--last"]).await.code, 0);
    assert_eq!(running.end().await.code, 4);
    while is_there(command) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_in_doubt_is_not_run_again() {
    let place = Place::new();
    // As long as it could still be at it, a resume waits.
    let (model, running, command) = under_way(&place, "timeout_seconds = 2").await;
    running.signal(Signal::KILL);
    running.end().await;
    // Nobody is left who could have ended it.
    kill_process_group(command, Signal::KILL).unwrap();
    let done = place.helix(&["resume", "--last", "--json"]).await;
    assert_eq!((done.code, &done.json()["status"]), (0, &"completed".into()));
    let told = result(&model)["error"].to_string();
    assert!(told.contains("whether it acted is not known; it was not run again"), "{told}");
    assert_eq!(std::fs::read_to_string(place.path("ran.txt")).unwrap(), "ran\n");
}

#[tokio::test]
async fn whoever_waits_for_a_command_in_doubt_is_told_of_it() {
    let place = Place::new();
    let (_model, running, command) = under_way(&place, "").await;
    running.signal(Signal::KILL);
    running.end().await;
    kill_process_group(command, Signal::KILL).unwrap();
    let mut resume = place.start(&["resume", "--last"]);
    let mut told = BufReader::new(resume.child.stderr.take().unwrap()).lines();
    let lease = told.next_line().await.unwrap().unwrap();
    assert!(lease.contains("may still live: waiting for up to "), "{lease}");
    let doubt = told.next_line().await.unwrap().unwrap();
    assert!(doubt.contains("in the middle of `shell`, which must not run twice"), "{doubt}");
    assert!(doubt.contains("waiting for up to 1 min 0"), "{doubt}");
    resume.signal(Signal::KILL);
    resume.end().await;
}
