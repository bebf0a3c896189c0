//! What the process answers to whoever started it.

use std::process::ExitCode;

use helix_agents::session::RunStatus;

/// The exit codes, which scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The run completed, or the command did what it was asked for.
    Completed = 0,
    /// The run failed, or the command could not do it.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// The run waits for people.
    #[expect(dead_code, reason = "no agent of this binary can wait for people yet")]
    Suspended = 3,
    /// The run was interrupted or aborted.
    Interrupted = 4,
}

impl Exit {
    /// The code of a run that ended so.
    pub(crate) fn of(status: RunStatus) -> Self {
        match status {
            RunStatus::Completed => Self::Completed,
            RunStatus::Interrupted | RunStatus::Aborted => Self::Interrupted,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
