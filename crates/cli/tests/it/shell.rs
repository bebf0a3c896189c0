//! Tests that the shell tool runs only approved commands.

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::server::{Server, Turn, model};
use crate::support::{Running, TestDir};

const AGENT: &str = r#"
name = "worker"
prompt = "You work."
[tools.shell]
allow = ["echo", "sh write.sh"]
"#;

async fn run(dir: &TestDir, command: Value) -> (Server, i32) {
    let model = model(vec![Turn::call("shell", command), Turn::Text("Done.")]).await;
    dir.ask(&model);
    dir.write("agent.toml", AGENT);
    dir.write("write.sh", "echo ran >> ran.txt; echo \"$HOME|$SECRET|$1\"; exit 3\n");
    let mut run = dir.command(&["run", "agent.toml", "Work.", "--json"]);
    let done = run.env("SECRET", "key").output().await.unwrap();
    (model, done.status.code().unwrap())
}

/// The tool result that the model received.
fn result(model: &Server) -> Value {
    let messages = model.requests().last().unwrap().json()["messages"].clone();
    let last = messages.as_array().unwrap().last().unwrap().clone();
    assert_eq!(last["role"], "tool", "{last}");
    serde_json::from_str(last["content"].as_str().unwrap()).unwrap()
}

async fn approve(dir: &TestDir, more: &[&str]) {
    let command = [&["approvals"], more, &["1.0", "--last", "--resume", "--json"]].concat();
    let mut command = dir.command(&command);
    let done = command.env("SECRET", "key").env("HOME", "/nowhere").output().await.unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
}

#[tokio::test]
async fn a_command_runs_when_it_is_approved_and_sees_no_keys() {
    let dir = TestDir::new();
    let command = json!({ "program": "sh", "arguments": ["write.sh", "$(id)"] });
    let (model, code) = run(&dir, command).await;
    assert_eq!((code, dir.path("ran.txt").exists()), (3, false));
    approve(&dir, &["approve"]).await;
    let expected = json!({ "exit_code": 3, "stdout": "/nowhere||$(id)\n", "stderr": "" });
    assert_eq!(result(&model), expected);
    assert_eq!(std::fs::read_to_string(dir.path("ran.txt")).unwrap(), "ran\n");
}

#[tokio::test]
async fn unlisted_commands_are_rejected_even_by_an_edit() {
    let dir = TestDir::new();
    let other = json!({ "program": "sh", "arguments": ["-c", "echo ran > ran.txt"] });
    let (model, code) = run(&dir, other.clone()).await;
    assert_eq!(code, 0);
    let message = result(&model)["error"].to_string();
    assert!(message.contains("not allowed and was not run; the allowed commands"), "{message}");

    let dir = TestDir::new();
    let (model, code) = run(&dir, json!({ "program": "echo", "arguments": ["hi"] })).await;
    assert_eq!(code, 3);
    approve(&dir, &["edit", "--arguments", &other.to_string()]).await;
    assert!(result(&model)["error"].to_string().contains("not allowed"), "{}", result(&model));
    assert!(!dir.path("ran.txt").exists());
}

/// Starts a long-running approved command and returns its process.
async fn start_slow_command(dir: &TestDir, more: &str) -> (Server, Running, Pid) {
    let command = json!({ "program": "sh", "arguments": ["write.sh"] });
    let (model, code) = run(dir, command).await;
    assert_eq!(code, 3);
    dir.write("agent.toml", format!("{AGENT}{more}"));
    dir.write("write.sh", "echo ran >> ran.txt; echo $$ > pid.new; mv pid.new pid; sleep 600\n");
    let running = dir.start(&["approvals", "approve", "1.0", "--last", "--resume"]);
    let id = loop {
        match std::fs::read_to_string(dir.path("pid")) {
            Ok(id) => break id.trim().parse().unwrap(),
            Err(_) => tokio::task::yield_now().await,
        }
    };
    (model, running, Pid::from_raw(id).unwrap())
}

/// Returns `true` if the process group has a process.
fn is_there(group: Pid) -> bool {
    rustix::process::test_kill_process_group(group).is_ok()
}

#[tokio::test]
async fn aborting_a_run_kills_its_command() {
    let dir = TestDir::new();
    let (_model, running, command) = start_slow_command(&dir, "").await;
    assert!(is_there(command));
    assert_eq!(dir.helix(&["abort", "--last"]).await.code, 0);
    assert_eq!(running.end().await.code, 4);
    while is_there(command) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_command_in_doubt_is_not_run_again() {
    let dir = TestDir::new();
    // A resume waits for the timeout of the command.
    let (model, running, command) = start_slow_command(&dir, "timeout_seconds = 2").await;
    running.signal(Signal::KILL);
    running.end().await;
    // The killed process could not kill the command.
    kill_process_group(command, Signal::KILL).unwrap();
    let done = dir.helix(&["resume", "--last", "--json"]).await;
    assert_eq!((done.code, &done.json()["status"]), (0, &"completed".into()));
    let message = result(&model)["error"].to_string();
    assert!(
        message.contains("it is unknown whether the call took effect; it was not run again"),
        "{message}"
    );
    assert_eq!(std::fs::read_to_string(dir.path("ran.txt")).unwrap(), "ran\n");
}

#[tokio::test]
async fn a_wait_for_a_command_in_doubt_is_reported() {
    let dir = TestDir::new();
    let (_model, running, command) = start_slow_command(&dir, "").await;
    running.signal(Signal::KILL);
    running.end().await;
    kill_process_group(command, Signal::KILL).unwrap();
    let mut resume = dir.start(&["resume", "--last"]);
    let mut message = BufReader::new(resume.child.stderr.take().unwrap()).lines();
    let lease = message.next_line().await.unwrap().unwrap();
    assert!(lease.contains("may still be running: waiting up to "), "{lease}");
    let doubt = message.next_line().await.unwrap().unwrap();
    assert!(doubt.contains("during a call of `shell`, which must not run twice"), "{doubt}");
    assert!(doubt.contains("waiting up to 1 min 0"), "{doubt}");
    resume.signal(Signal::KILL);
    resume.end().await;
}
