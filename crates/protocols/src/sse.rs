//! The framing of server-sent events.
//!
//! Frames end with two line feeds. Carriage returns are never written, because AG-UI's client does not accept them.

use helix_agents_core::error::{Error, ErrorCode, Result};
use serde::Serialize;

/// The content type of an event stream.
pub const CONTENT_TYPE: &str = "text/event-stream";

/// A comment that keeps the connection alive. Clients ignore it.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// The last frame of an AI SDK response. AG-UI's client does not accept it.
pub const DONE: &[u8] = b"data: [DONE]\n\n";

/// Encodes a value as one frame. `id` is the position in the stream that the frame brings a reader to.
///
/// # Errors
/// Returns [`ErrorCode::Internal`] if the value cannot be written as JSON.
///
/// # Examples
///
/// ```
/// use helix_agents_protocols::sse;
///
/// let frame = sse::frame(&serde_json::json!({"type": "start"}), Some(7))?;
/// assert_eq!(frame, b"id: 7\ndata: {\"type\":\"start\"}\n\n");
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
pub fn frame(value: &(impl Serialize + ?Sized), id: Option<u64>) -> Result<Vec<u8>> {
    let mut frame = Vec::with_capacity(128);
    push_frame(&mut frame, value, id)?;
    Ok(frame)
}

/// Encodes several values as frames. Only the last one has the id, because the others do not bring a reader to it.
///
/// # Errors
/// Returns the errors of [`frame`].
pub fn frames<T: Serialize>(
    values: impl IntoIterator<Item = T>,
    id: Option<u64>,
) -> Result<Vec<u8>> {
    let mut frames = Vec::with_capacity(256);
    let mut values = values.into_iter().peekable();
    while let Some(value) = values.next() {
        push_frame(&mut frames, &value, id.filter(|_| values.peek().is_none()))?;
    }
    Ok(frames)
}

fn push_frame(
    frame: &mut Vec<u8>,
    value: &(impl Serialize + ?Sized),
    id: Option<u64>,
) -> Result<()> {
    if let Some(id) = id {
        frame.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    frame.extend_from_slice(b"data: ");
    // JSON text contains no line feed: inside of strings, they are escaped.
    serde_json::to_writer(&mut *frame, value).map_err(|error| {
        Error::new(ErrorCode::Internal, "a frame cannot be written as JSON").with_source(error)
    })?;
    frame.extend_from_slice(b"\n\n");
    Ok(())
}
