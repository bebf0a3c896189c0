//! Runs the example as a user would, each command in a separate process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a command. Returns whether it succeeded, its output lines, and its error output.
async fn run(folder: &Path, words: &[&str]) -> (bool, Vec<String>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-approval"));
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

#[tokio::test]
async fn the_payment_is_made_after_approval() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(lines(folder, &["place"]).await, ["waiting for approval of pay (1.0)"]);
    let (succeeded, paid, error) = run(folder, &["resume"]).await;
    assert!(!succeeded && paid.is_empty() && error.contains("pending calls"), "{error}");
    let approved = lines(folder, &["approve"]).await;
    assert_eq!(approved, [r#"pay {"to":"Ann","cents":9000}"#, "recorded; now run: resume"]);
    let (succeeded, _, error) = run(folder, &["deny"]).await;
    assert!(!succeeded && error.contains("no call is waiting for approval"), "{error}");
    let paid = lines(folder, &["resume"]).await;
    assert_eq!(paid, ["paying 9000 cents to Ann", "The request is handled."]);
}

#[tokio::test]
async fn the_payment_is_not_made_after_denial() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    lines(folder, &["place"]).await;
    lines(folder, &["deny", "too", "expensive"]).await;
    assert_eq!(lines(folder, &["resume"]).await, ["The request is handled."]);
}
