//! A running `helix serve`.

use tokio::process::Command;

use super::{CommandResult, ModelServer, Running, TestDir};

/// A process that serves agent files of a folder.
pub(crate) struct Served {
    pub(crate) running: Running,
    pub(crate) url: String,
}

impl Served {
    /// Starts a server with these arguments, on a free port unless they name another.
    pub(crate) async fn start(dir: &TestDir, model: &ModelServer, args: &[&str]) -> Self {
        Self::of(command(dir, model, &[&["serve", "--listen", "127.0.0.1:0"], args].concat())).await
    }

    /// Starts a server on the port of an earlier one.
    pub(crate) async fn restart(
        dir: &TestDir,
        model: &ModelServer,
        url: &str,
        args: &[&str],
    ) -> Self {
        let address = url.trim_start_matches("http://");
        Self::of(command(dir, model, &[&["serve", "--listen", address], args].concat())).await
    }

    async fn of(command: Command) -> Self {
        let mut running = Running::of(command);
        let line = running.shows("url ").await;
        Self { running, url: line.split_whitespace().nth(1).unwrap().to_owned() }
    }

    /// Kills the process.
    pub(crate) async fn kill(mut self) {
        self.running.child.kill().await.unwrap();
    }

    /// Stops the process with SIGTERM and returns its result.
    pub(crate) async fn stop(self) -> CommandResult {
        self.running.signal(rustix::process::Signal::TERM);
        self.running.end().await
    }
}

fn command(dir: &TestDir, model: &ModelServer, args: &[&str]) -> Command {
    let mut command = dir.command(args);
    command.envs(model.variables());
    command
}
