//! The open attempts that the writing thread saved last.

use std::collections::HashMap;

use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{OpenAttempt, decode_open};

/// The maximum number of streams whose attempts are kept.
const CAPACITY: usize = 256;

/// The open attempts of streams as they were saved last, so that most batches do not decode them
/// again. An entry is only used if its text is equal to the stored text, so entries of other
/// processes' writes and of rolled back transactions do no harm.
#[derive(Default)]
pub(crate) struct SavedAttempts(HashMap<SessionId, (String, Vec<OpenAttempt>)>);

impl SavedAttempts {
    /// Returns the attempts that the text encodes, or `None` if the text is not valid. Removes them
    /// from the cache.
    pub(super) fn decode(&mut self, stream: &SessionId, text: &str) -> Option<Vec<OpenAttempt>> {
        match self.0.remove(stream) {
            Some((saved, attempts)) if saved == text => Some(attempts),
            _ => decode_open(stream, text),
        }
    }

    pub(super) fn insert(&mut self, stream: SessionId, text: String, attempts: Vec<OpenAttempt>) {
        if attempts.is_empty() {
            return;
        }
        if self.0.len() == CAPACITY {
            self.0.clear();
        }
        self.0.insert(stream, (text, attempts));
    }
}
