//! What this process remembers of the streams that it writes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use helix_agents_core::id::SessionId;

use super::write::Memory;
use crate::lock;

/// How many streams are remembered. When there are more, those that nobody writes just then are forgotten.
const MOST: usize = 1024;

/// What is remembered of one stream, for one writer at a time.
type Entry = Arc<tokio::sync::Mutex<Memory>>;

#[derive(Debug, Default)]
pub(crate) struct Cache {
    entries: Mutex<HashMap<SessionId, Entry>>,
}

impl Cache {
    pub(super) fn entry(&self, session: &SessionId) -> Entry {
        let mut entries = lock(&self.entries);
        if entries.len() >= MOST && !entries.contains_key(session) {
            entries.retain(|_, entry| Arc::strong_count(entry) > 1);
        }
        Arc::clone(entries.entry(session.clone()).or_default())
    }
}
