//! Runs the example as a user would: kills the process and starts another one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

fn example(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-resume"));
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").env_remove("HELIX_MODEL");
    command.current_dir(folder).kill_on_drop(true).stdin(Stdio::null());
    command
}

/// Runs the example and kills it once a line contains this text. Returns the lines up to that one.
async fn run_and_kill(folder: &Path, text: &str) -> Vec<String> {
    let mut child = example(folder).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    while let Some(line) = timeout(DEADLINE, lines.next_line()).await.unwrap().unwrap() {
        seen.push(line);
        if seen.last().is_some_and(|line| line.contains(text)) {
            child.kill().await.unwrap();
            return seen;
        }
    }
    panic!("the output never contained `{text}`: {seen:?}");
}

async fn run_to_completion(folder: &Path) -> Vec<String> {
    let output = timeout(DEADLINE, example(folder).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_next_process_resumes_a_killed_run() {
    let folder = tempfile::tempdir().unwrap();
    let first = run_and_kill(folder.path(), "visiting Rome").await;
    let expected = [
        "starting the tour",
        "visiting Oslo (attempt 1)",
        "visited Oslo",
        "visiting Rome (attempt 1)",
    ];
    assert_eq!(first, expected);

    // The visit to Oslo is in the log and is not repeated. The outcome of the visit to Rome is
    // unknown, so it is repeated.
    let second = run_to_completion(folder.path()).await;
    let expected = [
        "resuming",
        "visiting Rome (attempt 2)",
        "visited Rome",
        "visiting Athens (attempt 1)",
        "visited Athens",
        "All three are beautiful.",
    ];
    assert_eq!(second, expected);

    let third = run_to_completion(folder.path()).await;
    assert_eq!(third, ["starting another turn", "In Oslo, Rome and Athens."]);
}
