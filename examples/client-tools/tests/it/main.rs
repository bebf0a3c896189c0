//! Runs the example as a user would, each command in a separate process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use helix_agents::prelude::SqliteStore;
use helix_agents::session::load_events;
use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);
const BLUE: &str = r#"{"colour": "blue"}"#;

/// Runs a command. Returns whether it succeeded, its output lines, and its error output.
async fn run(folder: &Path, words: &[&str]) -> (bool, Vec<String>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-client-tools"));
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").env_remove("HELIX_MODEL");
    command.args(words).current_dir(folder).kill_on_drop(true).stdin(Stdio::null());
    let output = timeout(DEADLINE, command.output()).await.unwrap().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    (output.status.success(), lines, String::from_utf8(output.stderr).unwrap())
}

async fn lines(folder: &Path, words: &[&str]) -> Vec<String> {
    let (succeeded, lines, error) = run(folder, words).await;
    assert!(succeeded, "{words:?}: {error}");
    lines
}

/// Returns the result of the question as the model received it.
async fn result(folder: &Path) -> String {
    let store = SqliteStore::open(folder.join("orders.db")).await.unwrap();
    let events = load_events(&store, &"bicycle".into(), 0).await.unwrap();
    store.close().await;
    let finished = events.iter().find(|event| event.event.name() == "tool_finished").unwrap();
    serde_json::to_string(&finished.event).unwrap()
}

#[tokio::test]
async fn only_one_valid_answer_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(lines(folder, &["order"]).await, ["waiting for the result of ask (1.0)"]);
    let refused = lines(folder, &["answer", r#"{"colour": 7}"#]).await;
    assert!(refused[0].starts_with("refused: ") && refused[0].contains("/colour"), "{refused:?}");
    let (succeeded, _, error) = run(folder, &["resume"]).await;
    assert!(!succeeded && error.contains("pending calls"), "{error}");

    assert_eq!(lines(folder, &["answer", BLUE]).await, ["recorded; now run: resume"]);
    let (succeeded, _, error) = run(folder, &["answer", BLUE]).await;
    assert!(!succeeded && error.contains("no call is waiting for a result"), "{error}");
    assert_eq!(lines(folder, &["resume"]).await, ["The order is handled."]);
    let result = result(folder).await;
    assert!(result.contains("blue"), "{result}");
}

#[tokio::test]
async fn after_the_deadline_the_run_continues_without_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(lines(folder, &["order", "0.001"]).await, ["waiting for the result of ask (1.0)"]);
    assert_eq!(lines(folder, &["answer", BLUE]).await, ["too late; now run: resume"]);
    assert_eq!(lines(folder, &["resume"]).await, ["The order is handled."]);
    let result = result(folder).await;
    assert!(result.contains("tool_unanswered"), "{result}");
}
