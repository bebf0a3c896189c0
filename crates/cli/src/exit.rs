//! The exit codes of the process.

use std::process::ExitCode;

use helix_agents::session::RunStatus;

/// An exit code. The codes are a stable interface for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The run completed, or the command succeeded.
    Completed = 0,
    /// The run failed, or the command failed.
    Failed = 1,
    /// The command line is invalid.
    Usage = 2,
    /// The run is suspended and waits for an answer.
    Suspended = 3,
    /// The run was interrupted or aborted.
    Interrupted = 4,
}

impl Exit {
    /// All exit codes with their descriptions in the manual.
    pub(crate) const ALL: [(Self, &str); 5] = [
        (Self::Completed, "The run completed, or the command succeeded."),
        (Self::Failed, "The run failed, or the command failed."),
        (Self::Usage, "The command line is invalid."),
        (Self::Suspended, "The run is suspended and waits for an answer."),
        (Self::Interrupted, "The run was interrupted or aborted."),
    ];

    /// The exit code for a run status.
    pub(crate) fn of(status: RunStatus) -> Self {
        match status {
            RunStatus::Completed => Self::Completed,
            RunStatus::Interrupted | RunStatus::Aborted => Self::Interrupted,
            status if status.is_suspended() => Self::Suspended,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
