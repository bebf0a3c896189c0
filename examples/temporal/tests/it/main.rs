//! The example as people run it: workers that are really killed, and a client that does not notice.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use helix_agents_testkit::servers;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

/// A process of the example, and what it says.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(folder: &Path, queue: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helix-agents-example-temporal"));
        command
            .env_remove("OPENAI_API_KEY")
            .env_remove("OPENAI_BASE_URL")
            .env_remove("HELIX_MODEL");
        command.env("TOURS_SERVER", servers::temporal()).env("TOURS_QUEUE", queue);
        command.args(arguments).current_dir(folder).kill_on_drop(true);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits until a line holds this text. Answers the lines up to that one.
    async fn says(&mut self, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(line) = timeout(DEADLINE, self.lines.next_line()).await.unwrap().unwrap() {
            seen.push(line);
            if seen.last().is_some_and(|line| line.contains(text)) {
                return seen;
            }
        }
        panic!("it never said `{text}`: {seen:?}");
    }
}

#[tokio::test]
async fn a_worker_is_killed_and_another_one_goes_on() {
    let (folder, queue) = (tempfile::tempdir().unwrap(), servers::unique());
    let start = |arguments: &[&str]| Process::start(folder.path(), &queue, arguments);
    let mut first = start(&["worker"]);
    first.says("working").await;
    let mut client = start(&["ask", "Visit Oslo, Rome and Athens."]);
    let seen = first.says("visiting Rome").await;
    assert_eq!(seen, ["visiting Oslo", "been to Oslo", "visiting Rome"]);
    first.child.kill().await.unwrap();

    // Oslo is on record and is not visited again; Rome is in doubt, and is.
    let mut second = start(&["worker"]);
    let seen = second.says("been to Athens").await;
    let expected =
        ["working", "visiting Rome", "been to Rome", "visiting Athens", "been to Athens"];
    assert_eq!(seen, expected);
    client.says("All three are beautiful.").await;
    assert!(timeout(DEADLINE, client.child.wait()).await.unwrap().unwrap().success());
}
