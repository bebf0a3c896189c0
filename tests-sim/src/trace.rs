//! The trace of a world. Two executions of one story must have the same trace.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// The maximum number of events of a story that ends, if it has few session trees.
const MAX_EVENTS: u64 = 1_500_000;

/// The maximum number of events per session tree.
const MAX_EVENTS_PER_TREE: u64 = 150_000;

/// Everything that happened: the number of events, and each event as text if it is requested.
#[derive(Debug)]
pub(crate) struct Trace(Mutex<TraceState>);

#[derive(Debug)]
struct TraceState {
    /// The number of events.
    count: u64,
    /// The number of events after which the story must be in an endless loop.
    max_events: u64,
    /// Each event as text, if it is requested.
    lines: Option<Vec<String>>,
    started: Instant,
}

impl Trace {
    /// Creates the trace of a story with this number of session trees. It keeps its events as text if `text` is `true`.
    pub(crate) fn new(trees: usize, text: bool) -> Self {
        let max_events = MAX_EVENTS.max(MAX_EVENTS_PER_TREE * trees as u64);
        let (lines, started) = (text.then(Vec::new), Instant::now());
        Self(Mutex::new(TraceState { count: 0, max_events, lines, started }))
    }

    /// Records an event. Its details are formatted only if text was requested, because that takes much time.
    pub(crate) fn note(&self, what: &str, details: &dyn Debug) {
        let mut state = self.lock();
        state.count += 1;
        let at = state.started.elapsed().as_millis();
        if let Some(lines) = &mut state.lines {
            lines.push(format!("{at:>7} {what} {details:?}"));
        }
    }

    /// Returns `true` if there were so many events that the story must be in an endless loop.
    pub(crate) fn is_endless(&self) -> bool {
        let state = self.lock();
        state.count > state.max_events
    }

    /// Takes each event as text, if text was requested.
    pub(crate) fn take_lines(&self) -> Vec<String> {
        self.lock().lines.take().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, TraceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
