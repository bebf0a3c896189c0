//! What happened in a world, as a hash: two tellings of one seed must agree on it to the last bit.

use std::fmt::{self, Debug, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// More than this happens in no story that comes to its end.
const TOO_LONG: u64 = 400_000;

/// The hash of all that happened, and each thing as text for people who ask for it.
#[derive(Debug, Default)]
pub(crate) struct Trace(Mutex<Notes>);

#[derive(Debug)]
struct Notes {
    hash: Fnv,
    /// How much happened.
    count: u64,
    /// Each thing as text, if people are to read it.
    lines: Option<Vec<String>>,
}

impl Default for Notes {
    fn default() -> Self {
        Self { hash: Fnv(0xcbf2_9ce4_8422_2325), count: 0, lines: None }
    }
}

impl Trace {
    /// A trace that people are to read.
    pub(crate) fn of_text(text: bool) -> Self {
        Self(Mutex::new(Notes { lines: text.then(Vec::new), ..Notes::default() }))
    }

    /// Takes in that this happened.
    pub(crate) fn note(&self, what: &str, of: &dyn Debug) {
        let mut notes = self.lock();
        notes.count += 1;
        // Writing into a hash cannot fail.
        _ = writeln!(notes.hash, "{what} {of:?}");
        if let Some(lines) = &mut notes.lines {
            lines.push(format!("{what} {of:?}"));
        }
    }

    /// Takes in something for people alone, which follows from what is hashed.
    pub(crate) fn explain(&self, what: impl FnOnce() -> String) {
        let mut notes = self.lock();
        if let Some(lines) = &mut notes.lines {
            lines.push(what());
        }
    }

    /// Whether so much happened that the world must be going round in circles.
    pub(crate) fn is_too_long(&self) -> bool {
        self.lock().count > TOO_LONG
    }

    /// The hash of all that happened so far.
    pub(crate) fn hash(&self) -> u64 {
        self.lock().hash.0
    }

    /// Each thing that happened as text, if it was kept.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lock().lines.clone().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The 64-bit hash by Fowler, Noll and Vo, which is the same in every build.
#[derive(Debug)]
struct Fnv(u64);

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}
