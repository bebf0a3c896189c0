//! Runs the example as a user would.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_critic_reviews_two_versions() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-critic"));
    command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL").env_remove("HELIX_MODEL");
    command.current_dir(folder.path()).kill_on_drop(true).stdin(Stdio::null());
    let output = timeout(DEADLINE, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let mut lines = stdout.lines();
    assert!(lines.next().unwrap().ends_with("-agent-rex started"), "{stdout}");
    let rest: Vec<_> = lines.collect();
    let expected = [
        "2 of 5: This rhyme is a cliché.",
        "4 of 5: Better: it has a mood now.",
        "Roses are red,",
        "the evening too.",
        "rex reviewed 2 versions",
        "5 model calls in total",
    ];
    assert_eq!(rest, expected);
}
