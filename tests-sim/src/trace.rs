//! What happened in a world, as a hash: two tellings of one seed must agree on it to the last bit.

use std::fmt::{self, Debug, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// More than this happens in no story that comes to its end.
const TOO_LONG: u64 = 1_500_000;

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
    began: Option<Instant>,
}

impl Notes {
    /// Keeps a line, with the milliseconds since the first one, if people are to read it.
    fn tell(&mut self, what: &str, details: &dyn Debug) {
        if let Some(lines) = &mut self.lines {
            let at = self.began.get_or_insert_with(Instant::now).elapsed().as_millis();
            lines.push(format!("{at:>7} {what} {details:?}"));
        }
    }
}

impl Default for Notes {
    fn default() -> Self {
        Self { hash: Fnv(0xcbf2_9ce4_8422_2325), count: 0, lines: None, began: None }
    }
}

impl Trace {
    /// A trace that people are to read.
    pub(crate) fn of_text(text: bool) -> Self {
        Self(Mutex::new(Notes { lines: text.then(Vec::new), ..Notes::default() }))
    }

    /// Takes in that this happened.
    pub(crate) fn note(&self, what: &str, of: &dyn Debug) {
        self.note_brief(what, of, of);
    }

    /// Hashes the digest of an event, and keeps its details for people. The digest of an answer suffices: what it
    /// repeats was hashed when it was written.
    pub(crate) fn note_brief(&self, what: &str, digest: &dyn Debug, details: &dyn Debug) {
        let mut notes = self.lock();
        notes.count += 1;
        // Writing into a hash cannot fail.
        _ = writeln!(notes.hash, "{what} {digest:?}");
        notes.tell(what, details);
    }

    /// Tells people of what the hash need not know.
    pub(crate) fn tell(&self, what: &str, details: &dyn Debug) {
        self.lock().tell(what, details);
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

/// A hash of text in the way of Fowler, Noll and Vo, eight bytes at a time. It is the same in every build.
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
        let words = text.as_bytes().chunks(8);
        for word in words {
            let mut bytes = [0; 8];
            bytes[..word.len()].copy_from_slice(word);
            self.mix(u64::from_le_bytes(bytes));
        }
        Ok(())
    }
}
