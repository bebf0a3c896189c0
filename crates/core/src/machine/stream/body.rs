//! The storage format of chunks: a JSON array of groups. Each group stores the fields that its
//! chunks have in common once, because they are longer than most chunks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ChunkPlacement;
use crate::clock::Timestamp;
use crate::contracts::stream::{
    Attempt, Boundary, Chunk, ChunkKind, Effect, OpenAttempt, StreamOp,
};
use crate::error::{Error, ErrorCode, Result};
use crate::id::{RunId, SessionId};

/// The chunks of a batch as text, for a store that keeps text. It is encoded once, before the
/// position of the chunks is known, and reused when the write is retried.
#[derive(Debug, Clone)]
pub struct Encoded(Vec<Operation>);

/// The encoded form of a stream operation.
#[derive(Debug, Clone)]
enum Operation {
    Begin(Origin),
    Chunks(Vec<Part>),
    /// A watermark, with the versions of its boundaries.
    Watermark(Origin, Vec<(u64, Part)>),
}

/// The common fields and the time of announcements.
#[derive(Debug, Clone)]
struct Origin {
    text: Arc<str>,
    at: Timestamp,
}

impl Encoded {
    /// Encodes the chunks of a batch.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Internal`] if the chunks cannot be serialized as JSON, which is a bug.
    pub fn new(batch: &[StreamOp]) -> Result<Self> {
        let mut encoder = Encoder::default();
        let operations = batch.iter().map(|op| {
            Ok(match op {
                StreamOp::Begin { origin, .. } => Operation::Begin(encoder.announcing(origin)?),
                StreamOp::Chunks { chunks, .. } => Operation::Chunks(encoder.parts(chunks)?),
                StreamOp::Watermark(mark) => Operation::Watermark(
                    encoder.announcing(&mark.origin)?,
                    encoder.boundaries(&mark.boundaries)?,
                ),
            })
        });
        operations.collect::<Result<_>>().map(Self)
    }

    /// Returns the placed chunks of the batch as one body to store. [`Replay`](super::Replay) reads
    /// it.
    ///
    /// # Errors
    /// Returns the errors of [`new`](Self::new).
    pub fn body(&self, placed: &[ChunkPlacement]) -> Result<Vec<u8>> {
        let mut body = Body::default();
        for placed in placed {
            match (placed, self.0.get(placed.op())) {
                (ChunkPlacement::Chunks { attempt, .. }, Some(Operation::Chunks(parts))) => {
                    parts.iter().for_each(|part| body.push(*attempt, part));
                }
                (
                    ChunkPlacement::Boundaries { above, .. },
                    Some(Operation::Watermark(_, boundaries)),
                ) => {
                    let above = boundaries.iter().filter(|(version, _)| version > above);
                    above.for_each(|(_, part)| body.push(None, part));
                }
                (
                    ChunkPlacement::Announcement { kind, .. },
                    Some(Operation::Begin(origin) | Operation::Watermark(origin, _)),
                ) => {
                    let mut part = Part::new(Arc::clone(&origin.text));
                    part.push(origin.at, kind)?;
                    body.push(None, &part);
                }
                _ => {
                    let message = "the change belongs to another batch";
                    return Err(Error::new(ErrorCode::Internal, message));
                }
            }
        }
        Ok(body.finish())
    }
}

/// The fields that the chunks of a group have in common.
#[derive(PartialEq, Serialize)]
struct Common<'b> {
    agent: &'b str,
    session: &'b SessionId,
    run: &'b RunId,
    step: u32,
}

impl<'b> Common<'b> {
    fn of(chunk: &'b Chunk) -> Self {
        let Chunk { agent, session, run, step, .. } = chunk;
        Self { agent, session, run, step: *step }
    }
}

/// Encodes chunks as text. One encoder is used per batch, whose chunks mostly have the same common
/// fields.
#[derive(Default)]
struct Encoder<'b> {
    last: Option<(Common<'b>, Arc<str>)>,
}

impl<'b> Encoder<'b> {
    /// Returns the opening text of a group, without the closing brace.
    fn beginning(&mut self, chunk: &'b Chunk) -> Result<Arc<str>> {
        let common = Common::of(chunk);
        if let Some((_, text)) = self.last.as_ref().filter(|(last, _)| *last == common) {
            return Ok(Arc::clone(text));
        }
        let text = json(&common)?;
        let text = Arc::from(text.strip_suffix('}').unwrap_or(&text));
        self.last = Some((common, Arc::clone(&text)));
        Ok(text)
    }

    fn announcing(&mut self, origin: &'b Chunk) -> Result<Origin> {
        Ok(Origin { text: self.beginning(origin)?, at: origin.at })
    }

    fn parts(&mut self, chunks: &'b [Arc<Chunk>]) -> Result<Vec<Part>> {
        let alike = |a: &Arc<Chunk>, b: &Arc<Chunk>| Common::of(a) == Common::of(b);
        let groups = chunks.chunk_by(alike);
        groups
            .filter_map(|group| Some((group.first()?, group)))
            .map(|(first, group)| {
                let mut part = Part::new(self.beginning(first)?);
                group.iter().try_for_each(|chunk| part.push(chunk.at, &chunk.kind))?;
                Ok(part)
            })
            .collect()
    }

    /// Encodes each boundary separately, with its version.
    fn boundaries(&mut self, boundaries: &'b [Boundary]) -> Result<Vec<(u64, Part)>> {
        let part = |Boundary { version, chunk }: &'b Boundary| {
            let mut part = Part::new(self.beginning(chunk)?);
            part.push(chunk.at, &chunk.kind)?;
            Ok((*version, part))
        };
        boundaries.iter().map(part).collect()
    }
}

/// Chunks with the same common fields, as text.
#[derive(Debug, Clone)]
struct Part {
    beginning: Arc<str>,
    chunks: Vec<u8>,
}

impl Part {
    fn new(beginning: Arc<str>) -> Self {
        Self { beginning, chunks: Vec::with_capacity(256) }
    }

    fn push(&mut self, at: Timestamp, kind: &ChunkKind) -> Result<()> {
        if !self.chunks.is_empty() {
            self.chunks.push(b',');
        }
        serde_json::to_writer(&mut self.chunks, &(at, kind)).map_err(not_json)
    }
}

/// The closing text of a group.
const END: &[u8] = b"]}";

#[derive(Debug, Default)]
struct Body {
    text: Vec<u8>,
    last: Option<(Arc<str>, Option<Attempt>)>,
}

impl Body {
    fn push(&mut self, attempt: Option<Attempt>, part: &Part) {
        let same = (Arc::clone(&part.beginning), attempt);
        if self.last.as_ref() == Some(&same) {
            self.text.truncate(self.text.len() - END.len());
            self.text.push(b',');
        } else {
            self.text.reserve(part.beginning.len() + part.chunks.len() + 256);
            self.text.push(if self.last.is_none() { b'[' } else { b',' });
            self.text.extend_from_slice(part.beginning.as_bytes());
            if let Some(Attempt(number)) = attempt {
                self.text.extend_from_slice(format!(",\"attempt\":{number}").as_bytes());
            }
            self.text.extend_from_slice(b",\"chunks\":[");
            self.last = Some(same);
        }
        self.text.extend_from_slice(&part.chunks);
        self.text.extend_from_slice(END);
    }

    fn finish(mut self) -> Vec<u8> {
        if self.last.is_none() {
            self.text.push(b'[');
        }
        self.text.push(b']');
        self.text
    }
}

/// The storage format of chunks with the same origin and attempt.
#[derive(Deserialize)]
struct Group {
    agent: Arc<str>,
    session: SessionId,
    run: RunId,
    step: u32,
    #[serde(default)]
    attempt: Option<Attempt>,
    chunks: Vec<(Timestamp, ChunkKind)>,
}

/// Decodes the chunks of a body with their attempts. Returns `None` if the body is not valid.
pub(super) fn decode(body: &[u8]) -> Option<Vec<(Option<Attempt>, Chunk)>> {
    let groups: Vec<Group> = serde_json::from_slice(body).ok()?;
    let mut all = Vec::with_capacity(groups.iter().map(|group| group.chunks.len()).sum());
    for Group { agent, session, run, step, attempt, chunks } in groups {
        all.extend(chunks.into_iter().map(|(at, kind)| {
            let (agent, session, run) = (Arc::clone(&agent), session.clone(), run.clone());
            (attempt, Chunk { agent, session, run, step, at, kind })
        }));
    }
    Some(all)
}

/// The storage format of an open attempt. It is short, because it is written again with each batch.
#[derive(Serialize, Deserialize)]
struct StoredOpen {
    #[serde(rename = "a")]
    attempt: Attempt,
    #[serde(rename = "e")]
    effect: Effect,
    /// The child session that makes the attempt; `None` for the stream's own session.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    child: Option<SessionId>,
    #[serde(rename = "b")]
    start_seq: u64,
    #[serde(rename = "f", default)]
    fencing_token: u64,
}

/// Encodes the open attempts in the stream of a session.
///
/// # Errors
/// Returns the errors of [`Encoded::new`].
pub fn encode_open(stream: &SessionId, open: &[OpenAttempt]) -> Result<String> {
    let stored = |attempt: &OpenAttempt| StoredOpen {
        attempt: attempt.attempt,
        effect: attempt.effect.clone(),
        child: (attempt.session != *stream).then(|| attempt.session.clone()),
        start_seq: attempt.start_seq,
        fencing_token: attempt.fencing_token,
    };
    json(&open.iter().map(stored).collect::<Vec<_>>())
}

/// Decodes the text of [`encode_open`]. Returns `None` if the text is not valid.
#[must_use]
pub fn decode_open(stream: &SessionId, text: &str) -> Option<Vec<OpenAttempt>> {
    let stored: Vec<StoredOpen> = serde_json::from_str(text).ok()?;
    let open = |StoredOpen { attempt, effect, child, start_seq, fencing_token }| OpenAttempt {
        attempt,
        session: child.unwrap_or_else(|| stream.clone()),
        effect,
        start_seq,
        fencing_token,
    };
    Some(stored.into_iter().map(open).collect())
}

fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(not_json)
}

fn not_json(error: serde_json::Error) -> Error {
    Error::new(ErrorCode::Internal, "a chunk cannot be written as JSON").with_source(error)
}

#[cfg(test)]
mod tests;
