//! A terminal of its own for each test: a tmux server with one window, and a shell in it.

use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tokio::process::Command;
use tokio::time::sleep;

use crate::support::{ModelServer, Place};

/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(30);

/// How often the screen is looked at.
const LOOK: Duration = Duration::from_millis(15);

/// What the shell says when it waits.
const PROMPT: &str = "sh>";

/// A window with a shell in it. Its server ends with it, and so does what runs in it.
#[derive(Debug)]
pub(crate) struct Terminal<'a> {
    place: &'a Place,
}

impl<'a> Terminal<'a> {
    /// A window of the usual size.
    pub(crate) async fn open(place: &'a Place) -> Self {
        Self::with(place, (90, 40), &[]).await
    }

    /// A window of the usual size, whose model is a server's.
    pub(crate) async fn with_model(place: &'a Place, server: &ModelServer) -> Self {
        let variables = server.variables();
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        Self::with(place, (90, 40), &variables).await
    }

    /// A window of this many columns and rows, with these variables.
    pub(crate) async fn with(
        place: &'a Place,
        (columns, rows): (u16, u16),
        variables: &[(&str, &str)],
    ) -> Self {
        let terminal = Self { place };
        let helix = std::path::Path::new(env!("CARGO_BIN_EXE_helix")).parent().unwrap();
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let folder = place.path("");
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

    /// Pastes text, as a terminal does it.
    pub(crate) async fn pastes(&self, text: &str) {
        self.tmux(&["set-buffer", "--", text]).await;
        self.tmux(&["paste-buffer", "-p", "-r"]).await;
    }

    /// Makes the window as wide as this.
    pub(crate) async fn resize(&self, columns: u16) {
        self.tmux(&["resize-window", "-x", &columns.to_string()]).await;
    }

    /// All that it shows and that has scrolled away, wrapped lines as one.
    pub(crate) async fn text(&self) -> String {
        self.capture(&["-J", "-S", "-"]).await
    }

    /// The rows of the window, with what they look like.
    pub(crate) async fn colored(&self) -> String {
        self.capture(&["-e", "-S", "-"]).await
    }

    async fn capture(&self, how: &[&str]) -> String {
        let output = self.tmux(&[&["capture-pane", "-p"], how].concat()).await;
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// Waits until it shows this text, and tells all that it shows then.
    #[track_caller]
    pub(crate) fn shows(&self, text: &str) -> impl Future<Output = String> {
        let wanted = text.to_owned();
        self.until(format!("to show `{text}`"), move |shown| shown.contains(&wanted))
    }

    /// Waits until what it shows is as wanted, and tells it.
    #[track_caller]
    pub(crate) fn until(
        &self,
        what: String,
        is_wanted: impl Fn(&str) -> bool,
    ) -> impl Future<Output = String> {
        let caller = std::panic::Location::caller();
        let began = Instant::now();
        async move {
            loop {
                let shown = self.text().await;
                if is_wanted(&shown) {
                    return shown;
                }
                let waited = began.elapsed();
                assert!(waited < PATIENCE, "{caller}: waited for it {what}, but:\n{shown}");
                sleep(LOOK).await;
            }
        }
    }

    /// Waits until the shell is back, and tells the exit code of what it ran. The line has to be
    /// free for typing, and typing to be seen.
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

    /// Runs a program, and tells its process.
    pub(crate) async fn start(&self, program: &str) -> Pid {
        self.run(&format!("sh -c 'echo pid=$$; exec {program}'")).await;
        let shown = self.until("to tell the process".into(), |shown| pid(shown).is_some()).await;
        pid(&shown).unwrap()
    }

    async fn tmux(&self, args: &[&str]) -> Output {
        let output = self.command().args(args).stdin(Stdio::null()).output().await;
        let output = output.unwrap_or_else(|error| {
            panic!("tmux cannot be started ({error}); `cargo xtask test` says how to get it")
        });
        assert!(output.status.success(), "tmux {args:?}: {output:?}");
        output
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(self.place.path("tmux")).env_remove("TMUX");
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
