//! What a run is played on.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::screen::Screen;

/// Where a run is shown and kept, and who plays the model in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stage<'a> {
    /// Where it is shown.
    pub(crate) screen: &'a Screen,
    /// The database file.
    pub(crate) db: &'a Path,
    /// The model's name.
    pub(crate) model: &'a str,
    /// When the command began, or the turn of a conversation. None if nothing runs here.
    pub(crate) began: Option<Instant>,
    /// Whether somebody is there to be asked what it waits for.
    pub(crate) asks: bool,
}

impl Stage<'_> {
    /// How long it has taken until now, if it runs here.
    pub(crate) fn took(&self) -> Option<Duration> {
        self.began.map(|began| began.elapsed())
    }
}
