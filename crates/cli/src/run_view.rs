//! The context in which a run is shown.

use std::path::Path;
use std::time::{Duration, Instant};

use helix_agents::terminal::Screen;

/// The screen, database and model of a run that is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunView<'a> {
    /// The screen that shows the run.
    pub(crate) screen: &'a Screen,
    /// The database of the run.
    pub(crate) db: &'a Path,
    /// The model's name.
    pub(crate) model: &'a str,
    /// The start time of the command or of the conversation turn. `None` if this process does not execute
    /// the run.
    pub(crate) started: Option<Instant>,
    /// Whether the user can be asked for approvals.
    pub(crate) interactive: bool,
}

impl RunView<'_> {
    /// The time since the start, if this process executes the run.
    pub(crate) fn took(&self) -> Option<Duration> {
        self.started.map(|started| started.elapsed())
    }
}
