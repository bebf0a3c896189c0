//! The events of `/sse`.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::stream::StoredChunk;
use helix_agents_sse::Event;
use serde::Deserialize;

use super::StreamEnd;
use crate::error::{ClientError, Result};

/// The name of the last event.
const END: &[u8] = b"end";

/// A decoded event.
#[derive(Debug)]
pub(super) enum StreamEvent {
    /// A chunk.
    Chunk(StoredChunk),
    /// A chunk of a type that this version does not know, with its sequence number.
    Skipped(u64),
    /// The last event.
    End(StreamEnd),
}

#[derive(Deserialize)]
struct EndBody {
    status: StreamEnd,
}

/// The members that all chunks have.
#[derive(Deserialize)]
struct Envelope {
    seq: u64,
    #[serde(rename = "type")]
    kind: String,
}

/// Decodes an event. Returns `None` for an event of another name.
///
/// # Errors
/// Returns [`ErrorCode::ServerProtocol`] if the data has another form. The error does not quote it.
pub(super) fn decode(event: Event<'_>) -> Result<Option<StreamEvent>> {
    match event.name {
        b"" => chunk(event.data).map(Some),
        END => {
            let body: EndBody = serde_json::from_slice(event.data).map_err(|_| invalid())?;
            Ok(Some(StreamEvent::End(body.status)))
        }
        _ => Ok(None),
    }
}

fn chunk(data: &[u8]) -> Result<StreamEvent> {
    let error = match serde_json::from_slice(data) {
        Ok(chunk) => return Ok(StreamEvent::Chunk(chunk)),
        Err(error) => error,
    };
    let Envelope { seq, kind } = serde_json::from_slice(data).map_err(|_| invalid())?;
    if error.to_string().starts_with(&format!("unknown variant `{kind}`")) {
        tracing::debug!(seq, "skipped a chunk of a type that this version does not know");
        return Ok(StreamEvent::Skipped(seq));
    }
    Err(invalid())
}

fn invalid() -> ClientError {
    ClientError::new(
        ErrorCode::ServerProtocol,
        "an event of the stream has another form than this version expects",
    )
}

#[cfg(test)]
mod tests;
