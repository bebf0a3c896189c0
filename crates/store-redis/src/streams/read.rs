//! Reading streams: first what is kept, then as it grows.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{
    Attempt, Chunk, ChunkKind, Effect, Marked, OpenAttempt, StoredChunk, StreamInfo,
};

use super::body;
use super::watch::Subscription;
use crate::connection::Again;
use crate::error::corrupt;
use crate::reply::Reply;
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
    ready: VecDeque<StoredChunk>,
}

impl Reader {
    pub(super) fn new(store: RedisStore, session: &SessionId, from: u64) -> Self {
        let (session, cursor) = (session.clone(), from.max(1));
        Self { store, subscription: None, session, cursor, ready: VecDeque::new() }
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
                let part = fetch(inner, &self.session, self.cursor).await?;
                self.cursor = part.next;
                if part.chunks.is_empty() && !part.more {
                    self.subscription = Some(inner.watch.subscribe(&self.session).await);
                }
                self.ready = part.chunks;
                continue;
            };
            // Made before looking, so that a write after the look wakes it.
            let mut written = std::pin::pin!(subscription.written());
            written.as_mut().enable();
            let part = fetch(inner, &self.session, self.cursor).await?;
            self.cursor = part.next;
            if part.chunks.is_empty() && !part.more {
                // A message may be lost with its connection.
                let _told = tokio::time::timeout(inner.streams.poll_interval, written).await;
            }
            self.ready = part.chunks;
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
}

async fn fetch(inner: &Inner, session: &SessionId, from: u64) -> Result<Part> {
    let [feed, chunks, open, discarded, ..] = inner.keys.of(session).stream();
    let (keys, first) = ([feed, chunks, open, discarded], from.to_string());
    let args = [first.as_bytes(), ENTRIES, BUDGET];
    let mut reply = inner.server.eval(&script::STREAM_FETCH, &keys, &args, Again::Yes).await?;
    let (now, last) = (reply.time()?, reply.number::<u64>()?);
    let missing = reply.text()?;
    let missing: Option<u64> = missing.parse().ok();
    let more = reply.text()? == "1";
    let from = missing.map_or(from, |seq| seq + 1);
    let mut discarded = HashSet::new();
    for _ in 0..reply.number::<u64>()? {
        discarded.insert(Attempt(reply.number()?));
    }
    let (mut chunks, mut end) = (VecDeque::new(), from.saturating_sub(1));
    while !reply.is_empty() {
        end = decode(&mut reply, session, from, &discarded, &mut chunks)?;
    }
    if !more && end != last {
        return Err(corrupt(session, "chunks of the stream are missing"));
    }
    if let Some(seq) = missing {
        let chunk = Arc::new(resync(session, chunks.front(), now));
        chunks.push_front(StoredChunk { seq, attempt: None, chunk });
    }
    Ok(Part { chunks, next: end + 1, more })
}

/// Adds the chunks of one entry from `from` on; returns the number of its last one.
fn decode(
    reply: &mut Reply,
    session: &SessionId,
    from: u64,
    discarded: &HashSet<Attempt>,
    chunks: &mut VecDeque<StoredChunk>,
) -> Result<u64> {
    let damaged = || corrupt(session, "chunks of the stream cannot be read");
    let last: u64 = reply.number()?;
    let mut entry: Vec<(Option<Attempt>, Chunk)> = Vec::new();
    for _ in 0..reply.number::<u64>()? {
        let attempt = reply.text()?;
        let attempt = match &*attempt {
            "" => None,
            number => Some(Attempt(number.parse().map_err(|_| damaged())?)),
        };
        let part = body::chunks(&reply.bytes()?).ok_or_else(damaged)?;
        entry.extend(part.map(|chunk| (attempt, chunk)));
    }
    let mut seq = last.checked_sub(entry.len() as u64).ok_or_else(damaged)?;
    for (attempt, chunk) in entry {
        seq += 1;
        let is_discarded = attempt.is_some_and(|attempt| discarded.contains(&attempt));
        if seq >= from && !is_discarded {
            chunks.push_back(StoredChunk { seq, attempt, chunk: Arc::new(chunk) });
        }
    }
    Ok(last)
}

/// What a reader gets instead of chunks that are not kept. It looks as if it came from whoever
/// wrote the next one.
fn resync(session: &SessionId, next: Option<&StoredChunk>, now: Timestamp) -> Chunk {
    let next = next.map(|it| &*it.chunk);
    Chunk {
        agent: next.map_or_else(|| "".into(), |it| Arc::clone(&it.agent)),
        session: session.clone(),
        run: next.map_or_else(|| RunId::from(""), |it| it.run.clone()),
        step: next.map_or(0, |it| it.step),
        at: next.map_or(now, |it| it.at),
        kind: ChunkKind::StreamResync,
    }
}

/// How the stream stands.
pub(super) async fn info(inner: &Inner, session: &SessionId) -> Result<StreamInfo> {
    let [feed, chunks, open, discarded, marks, _] = inner.keys.of(session).stream();
    let keys = [feed, chunks, open, discarded, marks];
    let mut reply = inner.server.eval(&script::STREAM_INFO, &keys, &[], Again::Yes).await?;
    let (last_seq, trimmed): (u64, u64) = (reply.number()?, reply.number()?);
    let own = Marked { version: reply.number()?, seq: reply.number()? };
    let mut open = Vec::new();
    for _ in 0..reply.number::<u64>()? {
        let (attempt, text) = (Attempt(reply.number()?), reply.text()?);
        let attempt = opened(attempt, &text);
        open.push(
            attempt.ok_or_else(|| corrupt(session, "the attempts of the stream cannot be read"))?,
        );
    }
    open.sort_by_key(|it| it.attempt);
    let mut marked = BTreeMap::new();
    for _ in 0..reply.number::<u64>()? {
        let (child, text) = (SessionId::from(reply.text()?), reply.text()?);
        let mark = text.split_once(' ').and_then(|(version, seq)| {
            Some(Marked { version: version.parse().ok()?, seq: seq.parse().ok()? })
        });
        let damaged = || corrupt(session, "the marks of the stream cannot be read");
        marked.insert(child, mark.ok_or_else(damaged)?);
    }
    if own.version > 0 {
        marked.insert(session.clone(), own);
    }
    let first_seq = if trimmed < last_seq { trimmed + 1 } else { 0 };
    Ok(StreamInfo { first_seq, last_seq, marked, open })
}

/// Reads an open attempt: what was written before it, whose it is, and at what.
fn opened(attempt: Attempt, text: &str) -> Option<OpenAttempt> {
    let (began, rest) = text.split_once('\0')?;
    let (session, effect) = rest.split_once('\0')?;
    let effect: Effect = serde_json::from_str(effect).ok()?;
    Some(OpenAttempt {
        attempt,
        session: SessionId::from(session),
        effect,
        began: began.parse().ok()?,
    })
}
