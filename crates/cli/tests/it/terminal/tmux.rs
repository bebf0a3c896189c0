//! A separate terminal for each test: a tmux server with one window that runs a shell.

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tokio::process::Command;
use tokio::time::sleep;

use crate::support::{ModelServer, TestDir};

/// How long to wait for expected text.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The polling interval of the screen.
const INTERVAL: Duration = Duration::from_millis(15);

/// The prompt of the shell.
const PROMPT: &str = "sh>";

/// A window with a shell. Its tmux server and all its processes end on drop.
#[derive(Debug)]
pub(crate) struct Terminal<'a> {
    dir: &'a TestDir,
}

impl<'a> Terminal<'a> {
    /// A window of the default size.
    pub(crate) async fn open(dir: &'a TestDir) -> Self {
        Self::with(dir, (90, 40), &[]).await
    }

    /// A window of the default size with the environment variables of a model server.
    pub(crate) async fn with_model(dir: &'a TestDir, server: &ModelServer) -> Self {
        let variables = server.variables();
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        Self::with(dir, (90, 40), &variables).await
    }

    /// A window of this size, with these environment variables.
    pub(crate) async fn with(
        dir: &'a TestDir,
        (columns, rows): (u16, u16),
        variables: &[(&str, &str)],
    ) -> Self {
        let terminal = Self { dir };
        let helix = std::path::Path::new(env!("CARGO_BIN_EXE_helix")).parent().unwrap();
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let folder = dir.path("");
        let mut all = vec![
            format!("PATH={}:/usr/local/bin:/usr/bin:/bin", helix.display()),
            format!("HOME={}", folder.display()),
            format!("PS1={PROMPT} "),
            "TERM=screen-256color".to_owned(),
            "LC_ALL=C.UTF-8".to_owned(),
        ];
        all.extend(variables.iter().map(|(name, value)| format!("{name}={value}")));
        let all: Vec<_> = all.iter().map(String::as_str).collect();
        let folder = folder.to_str().unwrap();
        let window = ["new-session", "-d", "-x", &columns, "-y", &rows, "-c", folder];
        let shell = [&["--", "env", "-i"], &all[..], &["sh", "-i"]].concat();
        terminal.tmux(&[&["-f", "/dev/null"], &window[..], &shell].concat()).await;
        terminal.shows(PROMPT).await;
        terminal
    }

    /// Types a command line into the shell.
    pub(crate) async fn run(&self, line: &str) {
        self.types(line).await;
        self.keys(&["Enter"]).await;
    }

    /// Types text.
    pub(crate) async fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", "--", text]).await;
    }

    /// Presses keys, by their names in tmux.
    pub(crate) async fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat()).await;
    }

    /// Pastes text with bracketed paste.
    pub(crate) async fn pastes(&self, text: &str) {
        self.tmux(&["set-buffer", "--", text]).await;
        self.tmux(&["paste-buffer", "-p", "-r"]).await;
    }

    /// Resizes the window to this width.
    pub(crate) async fn resize(&self, columns: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string()]).await;
    }

    /// The whole text, including the scrollback, with wrapped lines joined.
    pub(crate) async fn text(&self) -> String {
        self.capture(&["-J", "-S", "-"]).await
    }

    /// The whole text with escape sequences for its styles.
    pub(crate) async fn colored(&self) -> String {
        self.capture(&["-e", "-S", "-"]).await
    }

    async fn capture(&self, how: &[&str]) -> String {
        let output = self.tmux(&[&["capture-pane", "-p"], how].concat()).await;
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Waits until the terminal shows this text, and returns its whole text.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> impl Future<Output = String> {
        let wanted = text.to_owned();
        self.until(format!("to show `{text}`"), move |shown| shown.contains(&wanted))
    }

    /// Waits until the text of the terminal satisfies a condition, and returns it.
    #[track_caller]
    pub(crate) fn until(
        &self,
        what: String,
        is_wanted: impl Fn(&str) -> bool,
    ) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        let started = Instant::now();
        async move {
            loop {
                let shown = self.text().await;
                if is_wanted(&shown) {
                    return shown;
                }
                let waited = started.elapsed();
                assert!(waited < TIMEOUT, "{caller}: waited for it {what}, but:\n{shown}");
                sleep(INTERVAL).await;
            }
        }
    }

    /// Waits for the prompt of the shell and returns the exit code of the last command. Checks that the
    /// terminal modes are restored.
    #[track_caller]
    pub(crate) fn exit(&self) -> impl Future<Output = i32> + '_ {
        let back = self.until("to be back in the shell".to_owned(), |shown| {
            shown.lines().last() == Some(PROMPT)
        });
        async move {
            back.await;
            self.run("echo code=$? && stty -a").await;
            let shown = self.shows("icanon").await;
            let modes: Vec<_> = shown.rsplit("code=").next().unwrap().split_whitespace().collect();
            for mode in ["isig", "icanon", "echo", "icrnl", "opost", "onlcr"] {
                assert!(modes.contains(&mode), "{mode} is off: {shown}");
            }
            let code = modes[0].parse().unwrap();
            self.keys(&["-R", "Enter"]).await;
            self.tmux(&["clear-history"]).await;
            code
        }
    }

    /// Starts a program and returns its process.
    pub(crate) async fn start(&self, program: &str) -> Pid {
        self.run(&format!("sh -c 'echo pid=$$; exec {program}'")).await;
        let shown = self.until("to show the process".into(), |shown| pid(shown).is_some()).await;
        pid(&shown).unwrap()
    }

    async fn tmux(&self, args: &[&str]) -> Output {
        let output = self.command().args(args).stdin(Stdio::null()).output().await;
        let output = output.unwrap_or_else(|error| {
            panic!(
                "tmux cannot be started ({error}); `cargo xtask test --gate` explains how to install it"
            )
        });
        assert!(output.status.success(), "tmux {args:?}: {output:?}");
        output
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.dir.path("tmux")).env_remove("TMUX");
        command
    }
}

fn pid(shown: &str) -> Option<Pid> {
    let id = shown.lines().rev().find_map(|line| line.strip_prefix("pid="))?;
    Pid::from_raw(id.parse().ok()?)
}

impl Drop for Terminal<'_> {
    fn drop(&mut self) {
        let _gone = self.command().into_std().arg("kill-server").output();
    }
}
