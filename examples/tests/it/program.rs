//! Processes of the examples. Each operation has a time limit.

use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader, Lines};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// The time limit of each operation.
const DEADLINE: Duration = Duration::from_secs(60);

/// Returns a command that runs an example with its scripted model, whatever model is configured.
pub(crate) fn example(path: &str) -> Command {
    let mut command = Command::new(path);
    for variable in helix_agents::providers::env::ALL {
        command.env_remove(variable.name);
    }
    command.kill_on_drop(true).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) async fn output(mut command: Command) -> Output {
    timeout(DEADLINE, command.output()).await.unwrap().unwrap()
}

/// Runs a command that succeeds, and returns the lines of its output.
pub(crate) async fn lines(command: Command) -> Vec<String> {
    let output = output(command).await;
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Runs a command that fails, and returns its error output.
pub(crate) async fn failure(command: Command) -> String {
    let output = output(command).await;
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A running process, and its output.
pub(crate) struct Process {
    child: Child,
    lines: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = Box::new(child.stdout.take().unwrap());
        Self { child, lines: BufReader::new(output as _).lines() }
    }

    /// Starts a process of which the error output is read.
    #[cfg(feature = "servers")]
    pub(crate) fn start_with_errors(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let errors = Box::new(child.stderr.take().unwrap());
        Self { child, lines: BufReader::new(errors as _).lines() }
    }

    /// Waits until a line contains this text. Returns the lines up to that one.
    pub(crate) async fn wait_for(&mut self, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(line) = timeout(DEADLINE, self.lines.next_line()).await.unwrap().unwrap() {
            seen.push(line);
            if seen.last().is_some_and(|line| line.contains(text)) {
                return seen;
            }
        }
        panic!("the output never contained `{text}`: {seen:?}");
    }

    /// Waits until the process has ended with success.
    #[cfg(feature = "servers")]
    pub(crate) async fn wait(&mut self) {
        assert!(timeout(DEADLINE, self.child.wait()).await.unwrap().unwrap().success());
    }

    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }
}

/// Starts a command, and kills the process once a line contains this text. Returns the lines up to that one.
pub(crate) async fn kill_at(text: &str, command: Command) -> Vec<String> {
    let mut process = Process::start(command);
    let seen = process.wait_for(text).await;
    process.kill().await;
    seen
}
