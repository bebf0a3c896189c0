//! Runs the binary in a separate folder for each test.

mod model;
mod served;
pub(crate) mod server;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

pub(crate) use self::model::{ModelServer, Scripted};
pub(crate) use self::served::Served;
use self::server::Server;

/// The environment variables that would change the behaviour of the binary, besides those of the providers.
const AMBIENT: [&str; 9] = [
    "CARGO",
    "EDITOR",
    "HELIX_DB",
    "HELIX_LOG",
    "HELIX_TOKEN",
    "NO_COLOR",
    "TERM",
    "USER",
    "VISUAL",
];

/// A temporary folder in which the binary runs and creates its database.
#[derive(Debug)]
pub(crate) struct TestDir {
    folder: TempDir,
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder after a scripted demo, and the session of the demo.
    pub(crate) async fn after_demo() -> (Self, String) {
        let dir = Self::new();
        let done = dir.helix(&["demo", "--scripted", "--pace", "0", "--json"]).await;
        let session = done.json()["session"].as_str().unwrap().to_owned();
        (dir, session)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file and creates its folders.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Configures this server as the model of the commands.
    pub(crate) fn ask(&self, model: &Server) {
        let url = format!("http://127.0.0.1:{}/v1", model.port);
        let config = format!("[providers.mine]\nbase_url = \"{url}\"\nmodel = \"small\"\n");
        self.write("helix.toml", config);
    }

    /// A command that runs the binary in this folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_helix"));
        let of_models = helix_agents::providers::env::ALL.iter().map(|variable| variable.name);
        for name in AMBIENT.into_iter().chain(of_models) {
            command.env_remove(name);
        }
        command.current_dir(self.folder.path()).args(args).kill_on_drop(true).stdin(Stdio::null());
        command
    }

    /// Runs a command to completion.
    #[track_caller]
    pub(crate) fn helix(&self, args: &[&str]) -> impl Future<Output = CommandResult> + use<> {
        let output = self.command(args).output();
        async move { CommandResult::of(output.await.unwrap()) }
    }

    /// Starts a slow demo and waits until its session exists.
    pub(crate) async fn start_demo(&self, pace: &str, more: &[&str]) -> Running {
        let mut running = self.start(&[&["demo", "--scripted", "--pace", pace], more].concat());
        let line = running.shows("session  ").await;
        running.session = line.split_whitespace().nth(1).unwrap().to_owned();
        running
    }

    /// Starts a command.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::of(self.command(args))
    }

    /// The events of a session's log.
    pub(crate) async fn log(&self, session: &str) -> Vec<Value> {
        self.helix(&["sessions", "log", session, "--json"]).await.json_lines()
    }
}

/// A running command.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) lines: Lines<BufReader<ChildStdout>>,
    pub(crate) session: String,
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, session: String::new() }
    }

    /// Reads its output until a line contains this text.
    pub(crate) async fn shows(&mut self, text: &str) -> String {
        loop {
            let line = self.lines.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("`{text}` never appeared in the output"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        let id = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }

    /// Waits until it exits and reads the rest of its output.
    pub(crate) async fn end(mut self) -> CommandResult {
        let mut stdout = String::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            stdout.push_str(&line);
            stdout.push('\n');
        }
        let mut done = CommandResult::of(self.child.wait_with_output().await.unwrap());
        done.stdout = stdout;
        done
    }
}

impl CommandResult {
    /// Runs a command with this standard input, which it need not read to the end.
    pub(crate) async fn of_input(mut command: Command, text: &str) -> Self {
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        match input.write_all(text.as_bytes()).await {
            // The command exited without reading everything.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
        drop(input);
        Self::of(child.wait_with_output().await.unwrap())
    }

    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The whole output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stderr, "", "{self:?}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("not one value: {self:?}"))
    }

    /// The whole output as JSON values, one per line.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        assert_eq!(self.stderr, "", "{self:?}");
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        self.stdout.lines().map(parse).collect()
    }

    /// The whole output as a JSON error.
    #[track_caller]
    pub(crate) fn json_error(&self) -> Value {
        assert_eq!(self.stdout, "", "{self:?}");
        let value: Value = serde_json::from_str(&self.stderr)
            .unwrap_or_else(|_| panic!("not one value: {self:?}"));
        let error = &value["error"];
        for member in ["code", "kind", "message", "context"] {
            assert!(error.get(member).is_some(), "no {member} in {error}");
        }
        error.clone()
    }
}
