//! Stream readers: they read the existing chunks and then follow the stream.

use std::collections::{HashSet, VecDeque};

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{Attempt, Replay, StoredChunk};

use super::watch::Subscription;
use crate::error::corrupt;
use crate::{Inner, RedisStore, script};

/// The maximum number of entries, and the approximate number of bytes, that a reader fetches at
/// once.
const ENTRIES: &[u8] = b"64";
const BUDGET: &[u8] = b"4194304";

/// A stream reader, its cursor, and the chunks that it has already fetched.
pub(super) struct Reader {
    store: RedisStore,
    subscription: Option<Subscription>,
    session: SessionId,
    cursor: u64,
    /// The generation of the stream that the reader last saw. It is empty if the reader has not seen a
    /// stream.
    seen: String,
    ready: VecDeque<StoredChunk>,
}

impl Reader {
    pub(super) fn new(store: RedisStore, session: &SessionId, from: u64) -> Self {
        let (session, cursor) = (session.clone(), from.max(1));
        let (seen, ready) = (String::new(), VecDeque::new());
        Self { store, subscription: None, session, cursor, seen, ready }
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(super) async fn next(&mut self) -> Result<StoredChunk> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Ok(chunk);
            }
            let inner = &self.store.inner;
            // A reader that only reads existing chunks needs no subscription.
            let Some(subscription) = &self.subscription else {
                let fetched = fetch(inner, &self.session, self.cursor, &self.seen).await?;
                if fetched.chunks.is_empty() && !fetched.more {
                    self.subscription = Some(inner.watch.subscribe(&self.session).await);
                }
                (self.cursor, self.ready) = (fetched.next, fetched.chunks);
                self.seen = fetched.generation.unwrap_or(std::mem::take(&mut self.seen));
                continue;
            };
            // Register for notification before reading, so that a later write wakes this reader.
            let mut written = std::pin::pin!(subscription.written());
            written.as_mut().enable();
            let fetched = fetch(inner, &self.session, self.cursor, &self.seen).await?;
            self.cursor = fetched.next;
            if fetched.chunks.is_empty() && !fetched.more {
                // The notification may be lost with its connection.
                let _notified = tokio::time::timeout(inner.streams.poll_interval, written).await;
            }
            self.ready = fetched.chunks;
            self.seen = fetched.generation.unwrap_or(std::mem::take(&mut self.seen));
        }
    }
}

/// The result of one fetch.
struct Fetched {
    chunks: VecDeque<StoredChunk>,
    /// The cursor of the next fetch.
    next: u64,
    /// `true` if the stream had more chunks.
    more: bool,
    /// The generation of the stream; `None` if there is no stream.
    generation: Option<String>,
}

async fn fetch(inner: &Inner, session: &SessionId, from: u64, seen: &str) -> Result<Fetched> {
    let [feed, chunks, discarded, ..] = inner.keys.of(session).stream();
    let (keys, first) = ([feed, chunks, discarded], from.to_string());
    let args = [first.as_bytes(), ENTRIES, BUDGET, seen.as_bytes()];
    let mut reply = inner.server.eval(&script::STREAM_FETCH, &keys, &args).await?;
    let now = reply.time()?;
    let (last, trimmed): (u64, u64) = (reply.number()?, reply.number()?);
    let more = reply.text()? == "1";
    let (generation, is_new_stream) = (reply.text()?, reply.text()? == "1");
    let mut discarded = HashSet::new();
    for _ in 0..reply.number::<u64>()? {
        discarded.insert(Attempt(reply.number()?));
    }
    let mut replay = if is_new_stream {
        Replay::from_start(trimmed, discarded)
    } else {
        Replay::new(from, last, trimmed, discarded)
    };
    let mut end = replay.from() - 1;
    while !reply.is_empty() {
        end = reply.number()?;
        let added = replay.add(end, &reply.bytes()?);
        added.ok_or_else(|| corrupt(session, "chunks of the stream are unreadable"))?;
    }
    if !more && end != last {
        return Err(corrupt(session, "chunks of the stream are missing"));
    }
    let generation = Some(generation).filter(|generation| !generation.is_empty());
    Ok(Fetched { chunks: replay.finish(session, now), next: end + 1, more, generation })
}
