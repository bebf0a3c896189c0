//! Runs the example as a user would: kills a worker, which the client does not notice.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use helix_agents_testkit::servers;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

const DEADLINE: Duration = Duration::from_secs(60);

/// A process of the example and its output.
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

    /// Waits until a line contains this text. Returns the lines up to that one.
    async fn wait_for(&mut self, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(line) = timeout(DEADLINE, self.lines.next_line()).await.unwrap().unwrap() {
            seen.push(line);
            if seen.last().is_some_and(|line| line.contains(text)) {
                return seen;
            }
        }
        panic!("the output never contained `{text}`: {seen:?}");
    }
}

#[tokio::test]
async fn another_worker_continues_the_run_of_a_killed_one() {
    let (folder, queue) = (tempfile::tempdir().unwrap(), servers::unique());
    let start = |arguments: &[&str]| Process::start(folder.path(), &queue, arguments);
    let mut first = start(&["worker"]);
    first.wait_for("worker started").await;
    let mut client = start(&["ask", "Visit Oslo, Rome and Athens."]);
    let seen = first.wait_for("visiting Rome").await;
    assert_eq!(seen, ["visiting Oslo", "visited Oslo", "visiting Rome"]);
    first.child.kill().await.unwrap();

    // The visit to Oslo is in the log and is not repeated. The outcome of the visit to Rome is
    // unknown, so it is repeated.
    let mut second = start(&["worker"]);
    let seen = second.wait_for("visited Athens").await;
    let expected =
        ["worker started", "visiting Rome", "visited Rome", "visiting Athens", "visited Athens"];
    assert_eq!(seen, expected);
    client.wait_for("All three are beautiful.").await;
    assert!(timeout(DEADLINE, client.child.wait()).await.unwrap().unwrap().success());
}
