//! The example as people run it: each part in a process of its own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

/// Runs a part. Answers whether it succeeded, its lines, and what it said of an error.
async fn part(folder: &Path, words: &[&str]) -> (bool, Vec<String>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-approval"));
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").env_remove("HELIX_MODEL");
    command.args(words).current_dir(folder).kill_on_drop(true).stdin(Stdio::null());
    let output = timeout(DEADLINE, command.output()).await.unwrap().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    (output.status.success(), lines, String::from_utf8(output.stderr).unwrap())
}

async fn lines(folder: &Path, words: &[&str]) -> Vec<String> {
    let (succeeded, lines, error) = part(folder, words).await;
    assert!(succeeded, "{words:?}: {error}");
    lines
}

#[tokio::test]
async fn it_is_paid_once_somebody_has_approved_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(lines(folder, &["place"]).await, ["waits for approval of pay (1.0)"]);
    let (succeeded, paid, error) = part(folder, &["go-on"]).await;
    assert!(!succeeded && paid.is_empty() && error.contains("pending calls"), "{error}");
    let approved = lines(folder, &["approve"]).await;
    assert_eq!(approved, [r#"pay {"to":"Ann","cents":9000}"#, "answered; now: go-on"]);
    let (succeeded, _, error) = part(folder, &["deny"]).await;
    assert!(!succeeded && error.contains("nothing waits for an answer"), "{error}");
    let paid = lines(folder, &["go-on"]).await;
    assert_eq!(paid, ["paying 9000 cents to Ann", "The bill is dealt with."]);
}

#[tokio::test]
async fn it_is_not_paid_if_somebody_denies_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    lines(folder, &["place"]).await;
    lines(folder, &["deny", "too", "dear"]).await;
    assert_eq!(lines(folder, &["go-on"]).await, ["The bill is dealt with."]);
}
