//! Runs one command in a process group that does not outlive the tool call, unless this process is
//! killed.

use std::env;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use helix_agents_core::tool::ToolError;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::allow::folders;
use crate::text::shortened;

/// The environment variables that commands inherit in addition to `PATH`. None of them is a secret.
const INHERITED: [&str; 8] = ["HOME", "LANG", "LC_ALL", "LOGNAME", "SHELL", "TMPDIR", "TZ", "USER"];

/// The maximum number of characters of a killed command's output that the model sees.
const MAX_OUTPUT: usize = 2000;

/// The time to read remaining output after the command has exited.
const LAST_OUTPUT: Duration = Duration::from_secs(1);

/// The limits of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) timeout: Duration,
    /// The maximum size of each output in bytes.
    pub(super) max_bytes: usize,
}

/// The result of a command.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Ended {
    /// The exit code; `None` if a signal killed the process.
    pub(super) exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signal: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// Whether output was omitted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) truncated: bool,
}

/// Runs a command to completion. On timeout, cancellation or drop of the future, the command and all
/// processes that it started are killed.
pub(super) async fn run(
    program: &Path,
    arguments: &[String],
    folder: &Path,
    bounds: Bounds,
    cancel: &CancellationToken,
) -> Result<Ended, ToolError> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_clear().envs(INHERITED.iter().filter_map(|name| Some((name, env::var_os(name)?))));
    if let Ok(path) = env::join_paths(folders()) {
        command.env("PATH", path);
    }
    let failed = |error| ToolError::new(format!("the command could not be started: {error}"));
    let mut child = command.spawn().map_err(failed)?;
    let group = Group::of(child.id());
    let (mut out, mut err) =
        (CapturedOutput::new(bounds.max_bytes), CapturedOutput::new(bounds.max_bytes));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let outcome = {
        let reading = async { tokio::join!(out.read(stdout), err.read(stderr)) };
        tokio::pin!(reading);
        let ended = async {
            let mut is_read = false;
            loop {
                tokio::select! {
                    _ = &mut reading, if !is_read => is_read = true,
                    status = child.wait() => break (status, is_read),
                }
            }
        };
        let ended = tokio::select! {
            ended = tokio::time::timeout(bounds.timeout, ended) => ended.map_err(|_| {
                format!("the command was killed after {} s", bounds.timeout.as_secs())
            }),
            () = cancel.cancelled() => Err("the run was aborted and the command was killed".to_owned()),
        };
        // Kills remaining processes of the group, so that none of them keeps the outputs open.
        drop(group);
        match ended {
            Ok((status, is_read)) => {
                if !is_read {
                    let _late = tokio::time::timeout(LAST_OUTPUT, reading).await;
                }
                Ok(status?)
            }
            Err(reason) => {
                let _late = tokio::time::timeout(LAST_OUTPUT, reading).await;
                Err(reason)
            }
        }
    };
    match outcome {
        Ok(status) => Ok(Ended {
            exit_code: status.code(),
            signal: status.signal(),
            truncated: out.truncated || err.truncated,
            stdout: out.into_text(),
            stderr: err.into_text(),
        }),
        Err(reason) => {
            let _reaped = tokio::time::timeout(LAST_OUTPUT, child.wait()).await;
            let (out, err) = (out.into_text(), err.into_text());
            let output = shortened(format!("{out}\n{err}").trim(), MAX_OUTPUT);
            Err(ToolError::new(format!("{reason}; its output until then: {output}")))
        }
    }
}

/// The process group of a command. It is killed on drop.
struct Group(Option<Pid>);

impl Group {
    fn of(id: Option<u32>) -> Self {
        Self(id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // Usually the group has no processes left.
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The beginning of an output. The rest is read and discarded, so that the writer does not block.
struct CapturedOutput {
    bytes: Vec<u8>,
    most: usize,
    truncated: bool,
}

impl CapturedOutput {
    fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most, truncated: false }
    }

    async fn read(&mut self, output: Option<impl AsyncRead + Unpin>) {
        let Some(mut output) = output else { return };
        let mut piece = vec![0; 8192];
        // A read error counts as the end of the output.
        while let Ok(read @ 1..) = output.read(&mut piece).await {
            let room = self.most.saturating_sub(self.bytes.len());
            self.truncated |= read > room;
            self.bytes.extend(piece.iter().take(read.min(room)));
        }
    }

    fn into_text(self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}
