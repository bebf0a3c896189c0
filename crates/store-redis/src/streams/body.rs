//! The form in which chunks are kept: parts, each a JSON object with what its chunks have in common, because that is
//! longer than most of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::stream::{Chunk, ChunkKind};

use super::json;

#[derive(Serialize)]
struct Group<'a> {
    agent: &'a str,
    session: &'a SessionId,
    run: &'a RunId,
    step: u32,
    chunks: Vec<(Timestamp, &'a ChunkKind)>,
}

impl<'a> Group<'a> {
    fn of(chunk: &'a Chunk, chunks: Vec<(Timestamp, &'a ChunkKind)>) -> Self {
        let Chunk { agent, session, run, step, .. } = chunk;
        Self { agent, session, run, step: *step, chunks }
    }
}

/// Chunks of one origin, as text.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) count: usize,
    pub(super) text: String,
}

impl Part {
    /// Chunks in their order, as few parts as they fit in.
    pub(super) fn all(chunks: &[Chunk]) -> Result<Vec<Self>> {
        let of_one = |a: &Chunk, b: &Chunk| {
            (&a.agent, &a.session, &a.run, a.step) == (&b.agent, &b.session, &b.run, b.step)
        };
        let groups = chunks.chunk_by(of_one);
        groups
            .filter_map(|group| Some((group.first()?, group)))
            .map(|(first, group)| {
                let chunks = group.iter().map(|chunk| (chunk.at, &chunk.kind)).collect();
                Ok(Self { count: group.len(), text: json(&Group::of(first, chunks))? })
            })
            .collect()
    }
}

/// A chunk that tells of attempts which are not known before the script runs: the text before and behind their
/// numbers.
pub(super) fn around(origin: &Chunk, kind: &ChunkKind) -> Result<(String, String)> {
    let text = json(&Group::of(origin, vec![(origin.at, kind)]))?;
    // What the kind says comes last, behind everything that others chose.
    let (before, behind) = text.rsplit_once("\"attempts\":[]").ok_or_else(|| {
        Error::new(ErrorCode::Internal, "an announcement does not name its attempts")
    })?;
    Ok((format!("{before}\"attempts\":["), format!("]{behind}")))
}

#[derive(Deserialize)]
struct Stored {
    agent: Arc<str>,
    session: SessionId,
    run: RunId,
    step: u32,
    chunks: Vec<(Timestamp, ChunkKind)>,
}

/// The chunks of a part; none if it cannot be read.
pub(super) fn chunks(text: &[u8]) -> Option<impl Iterator<Item = Chunk> + use<>> {
    let Stored { agent, session, run, step, chunks } = serde_json::from_slice(text).ok()?;
    Some(chunks.into_iter().map(move |(at, kind)| {
        let (agent, session, run) = (Arc::clone(&agent), session.clone(), run.clone());
        Chunk { agent, session, run, step, at, kind }
    }))
}

#[cfg(test)]
mod tests;
