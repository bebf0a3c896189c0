//! The trace of a world, as a hash: two executions of one seed must have the same hash.

use std::fmt::{self, Debug, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// The maximum number of events of a story that ends, if it has few session trees.
const MAX_EVENTS: u64 = 1_500_000;

/// The maximum number of events per session tree.
const MAX_EVENTS_PER_TREE: u64 = 150_000;

/// The hash of everything that happened, and each event as text if it is requested.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<TraceState>);

#[derive(Debug)]
struct TraceState {
    hash: Fnv,
    /// The number of events.
    count: u64,
    /// The number of events after which the story must be in an endless loop.
    max_events: u64,
    /// Each event as text, if it is requested.
    lines: Option<Vec<String>>,
    started: Option<Instant>,
}

impl TraceState {
    /// Keeps a line with the milliseconds since the first line, if text is requested.
    fn keep_line(&mut self, what: &str, details: &dyn Debug) {
        if let Some(lines) = &mut self.lines {
            let at = self.started.get_or_insert_with(Instant::now).elapsed().as_millis();
            lines.push(format!("{at:>7} {what} {details:?}"));
        }
    }
}

impl Default for TraceState {
    fn default() -> Self {
        let hash = Fnv(0xcbf2_9ce4_8422_2325);
        Self { hash, count: 0, max_events: MAX_EVENTS, lines: None, started: None }
    }
}

impl Trace {
    /// Creates the trace of a story with this number of session trees. It keeps its events as text if `text` is `true`.
    pub(crate) fn new(trees: usize, text: bool) -> Self {
        let max_events = MAX_EVENTS.max(MAX_EVENTS_PER_TREE * trees as u64);
        let lines = text.then(Vec::new);
        Self(Mutex::new(TraceState { max_events, lines, ..TraceState::default() }))
    }

    /// Records an event.
    pub(crate) fn note(&self, what: &str, of: &dyn Debug) {
        self.note_brief(what, of, of);
    }

    /// Hashes the digest of an event, and keeps its details as text. The digest of an answer suffices: the repeated
    /// data was hashed when it was written.
    pub(crate) fn note_brief(&self, what: &str, digest: &dyn Debug, details: &dyn Debug) {
        let mut state = self.lock();
        state.count += 1;
        // Writing into a hash cannot fail.
        _ = writeln!(state.hash, "{what} {digest:?}");
        state.keep_line(what, details);
    }

    /// Keeps a line that is not hashed.
    pub(crate) fn keep_line(&self, what: &str, details: &dyn Debug) {
        self.lock().keep_line(what, details);
    }

    /// Returns `true` if there were so many events that the story must be in an endless loop.
    pub(crate) fn is_endless(&self) -> bool {
        let state = self.lock();
        state.count > state.max_events
    }

    /// Returns the hash of everything that happened so far.
    pub(crate) fn hash(&self) -> u64 {
        self.lock().hash.0
    }

    /// Returns each event as text, if text was requested.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lock().lines.clone().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, TraceState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A Fowler–Noll–Vo style hash of text, eight bytes at a time. It is the same in every build.
#[derive(Debug)]
struct Fnv(u64);

impl Fnv {
    fn mix(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.mix(u64::from_le_bytes(word));
        }
        Ok(())
    }
}
