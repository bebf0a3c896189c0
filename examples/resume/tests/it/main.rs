//! The example as people run it: a process that is really killed, and the next one.
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

/// Runs it, and kills it once a line holds this text. Answers the lines up to that one.
async fn killed_at(folder: &Path, text: &str) -> Vec<String> {
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
    panic!("it never said `{text}`: {seen:?}");
}

async fn to_the_end(folder: &Path) -> Vec<String> {
    let output = timeout(DEADLINE, example(folder).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn kill_it_and_the_next_process_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let first = killed_at(folder.path(), "visiting Rome").await;
    let expected =
        ["setting out", "visiting Oslo (attempt 1)", "been to Oslo", "visiting Rome (attempt 1)"];
    assert_eq!(first, expected);

    // Oslo is on record and is not visited again; Rome is in doubt, and is.
    let second = to_the_end(folder.path()).await;
    let expected = [
        "going on",
        "visiting Rome (attempt 2)",
        "been to Rome",
        "visiting Athens (attempt 1)",
        "been to Athens",
        "All three are beautiful.",
    ];
    assert_eq!(second, expected);

    let third = to_the_end(folder.path()).await;
    assert_eq!(third, ["another turn of the same session", "In Oslo, Rome and Athens."]);
}
