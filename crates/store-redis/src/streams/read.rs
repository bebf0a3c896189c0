//! Reading streams: first what is kept, then as it grows.

use std::collections::{HashSet, VecDeque};

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{Attempt, Replay, StoredChunk};

use super::watch::Subscription;
use crate::error::corrupt;
use crate::{Inner, RedisStore, script};

/// The most entries, and about the most bytes, that a reader takes at once.
const ENTRIES: &[u8] = b"64";
const BUDGET: &[u8] = b"4194304";

/// A reader: which chunk of which stream it wants next, and what it has got already.
pub(super) struct Reader {
    store: RedisStore,
    subscription: Option<Subscription>,
    session: SessionId,
    cursor: u64,
    /// The life of the stream that it has seen; empty if it has seen none.
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
            // Whoever reads only what is there needs not be told of more.
            let Some(subscription) = &self.subscription else {
                let part = fetch(inner, &self.session, self.cursor, &self.seen).await?;
                if part.chunks.is_empty() && !part.more {
                    self.subscription = Some(inner.watch.subscribe(&self.session).await);
                }
                (self.cursor, self.ready) = (part.next, part.chunks);
                self.seen = part.life.unwrap_or(std::mem::take(&mut self.seen));
                continue;
            };
            // Made before looking, so that a write after the look wakes it.
            let mut written = std::pin::pin!(subscription.written());
            written.as_mut().enable();
            let part = fetch(inner, &self.session, self.cursor, &self.seen).await?;
            self.cursor = part.next;
            if part.chunks.is_empty() && !part.more {
                // A message may be lost with its connection.
                let _told = tokio::time::timeout(inner.streams.poll_interval, written).await;
            }
            self.ready = part.chunks;
            self.seen = part.life.unwrap_or(std::mem::take(&mut self.seen));
        }
    }
}

/// Some chunks of a stream.
struct Part {
    chunks: VecDeque<StoredChunk>,
    /// Where to go on.
    next: u64,
    /// Whether there was more when it was read.
    more: bool,
    /// Which life of the stream it is; `None` if there is no stream.
    life: Option<String>,
}

async fn fetch(inner: &Inner, session: &SessionId, from: u64, seen: &str) -> Result<Part> {
    let [feed, chunks, discarded, ..] = inner.keys.of(session).stream();
    let (keys, first) = ([feed, chunks, discarded], from.to_string());
    let args = [first.as_bytes(), ENTRIES, BUDGET, seen.as_bytes()];
    let mut reply = inner.server.eval(&script::STREAM_FETCH, &keys, &args).await?;
    let now = reply.time()?;
    let (last, trimmed): (u64, u64) = (reply.number()?, reply.number()?);
    let more = reply.text()? == "1";
    let (life, is_next) = (reply.text()?, reply.text()? == "1");
    let mut discarded = HashSet::new();
    for _ in 0..reply.number::<u64>()? {
        discarded.insert(Attempt(reply.number()?));
    }
    let mut replay = if is_next {
        Replay::anew(trimmed, discarded)
    } else {
        Replay::new(from, last, trimmed, discarded)
    };
    let mut end = replay.from() - 1;
    while !reply.is_empty() {
        end = reply.number()?;
        let added = replay.add(end, &reply.bytes()?);
        added.ok_or_else(|| corrupt(session, "chunks of the stream cannot be read"))?;
    }
    if !more && end != last {
        return Err(corrupt(session, "chunks of the stream are missing"));
    }
    let life = Some(life).filter(|it| !it.is_empty());
    Ok(Part { chunks: replay.finish(session, now), next: end + 1, more, life })
}
