//! Runs the example as a user would, twice in one folder.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn both_sessions_continue_and_shared_calls_run_once() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-fork"));
        command.env_remove("OPENAI_API_KEY").env_remove("OPENAI_BASE_URL");
        command.env_remove("HELIX_MODEL").current_dir(folder.path()).kill_on_drop(true);
        let output = timeout(DEADLINE, command.stdin(Stdio::null()).output()).await;
        let output = output.unwrap().unwrap();
        assert!(output.status.success(), "{output:?}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        let expected = [
            "looking up trains to Bergen",
            "Take the 08:25.",
            "original: The 19:00 takes you back.",
            "fork:     Then take the 12:25.",
            "messages: 6 and 5, 3 of them shared",
            "tool calls: 1 and 0",
        ];
        assert_eq!(stdout.lines().collect::<Vec<_>>(), expected);
    }
}
