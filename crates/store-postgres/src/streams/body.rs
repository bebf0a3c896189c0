//! The form in which chunks are kept: a JSON array of groups, each with what its chunks have in
//! common, because that is longer than most of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{Attempt, Boundary, Chunk, ChunkKind};

use super::{json, not_json};

#[derive(PartialEq, Serialize)]
struct Origin {
    agent: Arc<str>,
    session: SessionId,
    run: RunId,
    step: u32,
}

impl Origin {
    fn of(chunk: &Chunk) -> Self {
        let Chunk { agent, session, run, step, .. } = chunk;
        let (agent, session, run) = (Arc::clone(agent), session.clone(), run.clone());
        Self { agent, session, run, step: *step }
    }

    fn is_of(&self, chunk: &Chunk) -> bool {
        let Chunk { agent, session, run, step, .. } = chunk;
        self.step == *step && self.run == *run && self.session == *session && self.agent == *agent
    }
}

/// Writes chunks as text. One per batch, whose chunks have mostly one origin.
#[derive(Default)]
pub(super) struct Encoder {
    last: Option<(Origin, Arc<str>)>,
}

/// Chunks of one origin, as text.
#[derive(Debug)]
pub(super) struct Part {
    /// Without the brace that ends it.
    origin: Arc<str>,
    chunks: Vec<u8>,
    count: u64,
}

impl Encoder {
    pub(super) fn origin(&mut self, chunk: &Chunk) -> Result<Arc<str>> {
        if let Some((_, text)) = self.last.as_ref().filter(|(origin, _)| origin.is_of(chunk)) {
            return Ok(Arc::clone(text));
        }
        let origin = Origin::of(chunk);
        let text = json(&origin)?;
        let text = Arc::from(text.strip_suffix('}').unwrap_or(&text));
        self.last = Some((origin, Arc::clone(&text)));
        Ok(text)
    }

    pub(super) fn parts(&mut self, chunks: &[Chunk]) -> Result<Vec<Part>> {
        let of_one = |a: &Chunk, b: &Chunk| {
            (&a.agent, &a.session, &a.run, a.step) == (&b.agent, &b.session, &b.run, b.step)
        };
        let groups = chunks.chunk_by(of_one);
        groups
            .filter_map(|group| Some((group.first()?, group)))
            .map(|(first, group)| {
                let mut part = Part::new(self.origin(first)?);
                group.iter().try_for_each(|chunk| part.push(chunk.at, &chunk.kind))?;
                Ok(part)
            })
            .collect()
    }

    /// Each by itself, with its version.
    pub(super) fn boundaries(&mut self, boundaries: &[Boundary]) -> Result<Vec<(u64, Part)>> {
        let part = |Boundary { version, chunk }: &Boundary| {
            let mut part = Part::new(self.origin(chunk)?);
            part.push(chunk.at, &chunk.kind)?;
            Ok((*version, part))
        };
        boundaries.iter().map(part).collect()
    }
}

impl Part {
    pub(super) fn new(origin: Arc<str>) -> Self {
        Self { origin, chunks: Vec::with_capacity(256), count: 0 }
    }

    pub(super) fn push(&mut self, at: Timestamp, kind: &ChunkKind) -> Result<()> {
        if self.count > 0 {
            self.chunks.push(b',');
        }
        self.count += 1;
        serde_json::to_writer(&mut self.chunks, &(at, kind)).map_err(not_json)
    }
}

/// What ends a group.
const END: &[u8] = b"]}";

/// What becomes a row.
#[derive(Debug, Default)]
pub(super) struct Body {
    text: Vec<u8>,
    pub(super) count: u64,
    last: Option<(Arc<str>, Option<Attempt>)>,
}

impl Body {
    pub(super) fn push(&mut self, attempt: Option<Attempt>, part: &Part) {
        let same = (Arc::clone(&part.origin), attempt);
        if self.last.as_ref() == Some(&same) {
            self.text.truncate(self.text.len() - END.len());
            self.text.push(b',');
        } else {
            self.text.reserve(part.origin.len() + part.chunks.len() + 256);
            self.text.push(if self.count == 0 { b'[' } else { b',' });
            self.text.extend_from_slice(part.origin.as_bytes());
            if let Some(Attempt(number)) = attempt {
                self.text.extend_from_slice(format!(",\"attempt\":{number}").as_bytes());
            }
            self.text.extend_from_slice(b",\"chunks\":[");
            self.last = Some(same);
        }
        self.text.extend_from_slice(&part.chunks);
        self.text.extend_from_slice(END);
        self.count += part.count;
    }

    /// As it is kept.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.text.push(b']');
        self.text
    }
}

/// Chunks of one origin and one attempt, as they are kept.
#[derive(Deserialize)]
pub(super) struct Group {
    agent: Arc<str>,
    session: SessionId,
    run: RunId,
    step: u32,
    #[serde(default)]
    pub(super) attempt: Option<Attempt>,
    pub(super) chunks: Vec<(Timestamp, ChunkKind)>,
}

impl Group {
    /// Those of a body; none if it cannot be read.
    pub(super) fn all(body: &[u8]) -> Option<Vec<Self>> {
        serde_json::from_slice(body).ok()
    }

    pub(super) fn chunks(self) -> impl Iterator<Item = Chunk> {
        let Self { agent, session, run, step, chunks, .. } = self;
        chunks.into_iter().map(move |(at, kind)| {
            let (agent, session, run) = (Arc::clone(&agent), session.clone(), run.clone());
            Chunk { agent, session, run, step, at, kind }
        })
    }
}

#[cfg(test)]
mod tests;
