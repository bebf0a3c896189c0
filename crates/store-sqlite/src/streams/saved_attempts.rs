//! The open attempts that the writing thread saved last.

use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{OpenAttempt, decode_open};

/// The number of streams whose attempts are kept.
const CAPACITY: usize = 256;

/// The decoded open attempts of streams, by stream key modulo [`CAPACITY`], so that most batches do
/// not decode them again. An entry is only used if its text equals the stored text, so it cannot be
/// outdated by other processes or by transactions that are rolled back.
pub(crate) struct SavedAttempts(Vec<Option<Saved>>);

struct Saved {
    stream: SessionId,
    text: String,
    attempts: Vec<OpenAttempt>,
}

impl SavedAttempts {
    pub(super) fn new() -> Self {
        Self((0..CAPACITY).map(|_| None).collect())
    }

    fn slot(&mut self, key: i64) -> Option<&mut Option<Saved>> {
        let slot = usize::try_from(key).ok()? % CAPACITY;
        self.0.get_mut(slot)
    }

    /// Returns the attempts that the text encodes, or `None` if the text is not valid. Removes them
    /// from the cache.
    pub(super) fn take_or_decode(
        &mut self,
        key: i64,
        stream: &SessionId,
        text: &str,
    ) -> Option<Vec<OpenAttempt>> {
        let saved = self.slot(key).and_then(Option::take);
        match saved.filter(|saved| saved.stream == *stream && saved.text == text) {
            Some(saved) => Some(saved.attempts),
            None => decode_open(stream, text),
        }
    }

    pub(super) fn save(
        &mut self,
        key: i64,
        stream: &SessionId,
        text: String,
        attempts: Vec<OpenAttempt>,
    ) {
        if let Some(slot) = self.slot(key) {
            *slot = Some(Saved { stream: stream.clone(), text, attempts });
        }
    }
}
