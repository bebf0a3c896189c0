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
    Suspended = 3,
    /// The run was interrupted or aborted.
    Interrupted = 4,
}

impl Exit {
    /// All of them, in the words of the manual.
    pub(crate) const ALL: [(Self, &str); 5] = [
        (Self::Completed, "The run completed, or the command did what it was asked for."),
        (Self::Failed, "The run failed, or the command could not do it."),
        (Self::Usage, "The command line makes no sense."),
        (Self::Suspended, "The run waits for people."),
        (Self::Interrupted, "The run was interrupted or aborted."),
    ];

    /// The code of a run that ended so.
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
