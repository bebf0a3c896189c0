//! The text of server-sent events.

use bytes::{BufMut as _, BytesMut};
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::stream::StoredChunk;
use serde::Serialize;

/// The comment that opens a stream, so that proxies pass the head of the response on at once.
pub(super) const OPEN: &[u8] = b": open\n\n";

/// The comment that keeps an idle connection open.
pub(super) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Appends the event of a chunk. JSON contains no line break, so the data is one line.
pub(super) fn push_chunk(frame: &mut BytesMut, stored: &StoredChunk) -> Result<()> {
    frame.extend_from_slice(b"id: ");
    frame.extend_from_slice(stored.seq.to_string().as_bytes());
    frame.extend_from_slice(b"\ndata: ");
    push_json(frame, stored)?;
    frame.extend_from_slice(b"\n\n");
    Ok(())
}

/// Appends the last event of a stream.
pub(super) fn push_end(frame: &mut BytesMut, end: &impl Serialize) -> Result<()> {
    frame.extend_from_slice(b"event: end\ndata: ");
    push_json(frame, end)?;
    frame.extend_from_slice(b"\n\n");
    Ok(())
}

fn push_json(frame: &mut BytesMut, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(frame.writer(), value).map_err(|error| {
        Error::new(ErrorCode::Internal, "an event could not be written as JSON").with_source(error)
    })
}
