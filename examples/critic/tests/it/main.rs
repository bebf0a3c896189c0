//! The example as people run it.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_critic_is_asked_twice_and_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-critic"));
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").env_remove("HELIX_MODEL");
    command.current_dir(folder.path()).kill_on_drop(true).stdin(Stdio::null());
    let output = timeout(DEADLINE, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8(output.stdout).unwrap();
    let mut lines = told.lines();
    assert!(lines.next().unwrap().ends_with("-agent-rex begins"), "{told}");
    let rest: Vec<_> = lines.collect();
    let expected = [
        "2 of 5: Everybody knows that one.",
        "4 of 5: Better: now it has a mood.",
        "Roses are red,",
        "the evening too.",
        "rex was asked 2 times",
        "5 model calls in all",
    ];
    assert_eq!(rest, expected);
}
