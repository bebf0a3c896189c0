//! The context in which a run is shown.

use std::time::{Duration, Instant};

use helix_agents::terminal::Screen;

use crate::location::Location;

/// The screen, location and model of a run that is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunView<'a> {
    /// The screen that shows the run.
    pub(crate) screen: &'a Screen,
    /// The location of the run's session.
    pub(crate) db: &'a Location,
    /// The model's name. `None` if it is not recorded, or at a server.
    pub(crate) model: Option<&'a str>,
    /// The start time of the command or of the conversation turn. `None` if this command does not follow
    /// the run.
    pub(crate) started: Option<Instant>,
    /// Whether the user can be asked for approvals.
    pub(crate) interactive: bool,
}

impl RunView<'_> {
    /// The time since the start, if this command follows the run.
    pub(crate) fn took(&self) -> Option<Duration> {
        self.started.map(|started| started.elapsed())
    }
}
