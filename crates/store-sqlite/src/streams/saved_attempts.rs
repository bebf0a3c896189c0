//! The open attempts that the writing thread saved last.

use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{OpenAttempt, decode_open};

/// The number of streams whose attempts are kept.
const CAPACITY: usize = 256;

/// The open attempts of streams as they were saved last, so that most batches do not decode them
/// again. An entry is only used if its text is equal to the stored text, so writes of other
/// processes and rolled back transactions do no harm.
///
/// The keys of streams are consecutive, so the place of an entry is its key modulo the capacity.
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

    fn place(&mut self, key: i64) -> Option<&mut Option<Saved>> {
        let place = usize::try_from(key).ok()? % CAPACITY;
        self.0.get_mut(place)
    }

    /// Returns the attempts that the text encodes, or `None` if the text is not valid. Removes them
    /// from the cache.
    pub(super) fn decode(
        &mut self,
        key: i64,
        stream: &SessionId,
        text: &str,
    ) -> Option<Vec<OpenAttempt>> {
        let saved = self.place(key).and_then(Option::take);
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
        if let Some(place) = self.place(key) {
            *place = Some(Saved { stream: stream.clone(), text, attempts });
        }
    }
}
