//! The event stream of AWS: binary frames with headers, a JSON payload and two checksums.
//!
//! The decoder turns each frame into one JSON object, so that readers of replies see the same kind of data as from
//! server-sent events: `{"type": "contentBlockDelta", "event": {…}}`, or `{"type": "…Exception", "exception": {…}}`.

use helix_agents_core::error::{Error, ErrorCode};

use crate::json_writer::Object;

#[cfg(test)]
mod tests;

/// The bytes of a frame before its headers: two lengths and a checksum.
const PRELUDE: usize = 12;

/// The bytes of the checksum at the end of a frame.
const CHECKSUM: usize = 4;

/// The type of a header whose value is a string. Others do not occur in replies.
const STRING: u8 = 7;

/// Decodes an event stream.
#[derive(Debug)]
pub(crate) struct FrameDecoder {
    buffer: Vec<u8>,
    max_frame: usize,
}

impl FrameDecoder {
    /// Creates a decoder with a limit for the size of a frame.
    pub(crate) const fn new(max_frame: usize) -> Self {
        Self { buffer: Vec::new(), max_frame }
    }

    /// Adds received bytes, and passes each complete frame on as a JSON object.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ProviderProtocol`] for an invalid frame, and the errors of `on_frame`.
    pub(crate) fn feed<E: From<Error>>(
        &mut self,
        piece: &[u8],
        mut on_frame: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.buffer.extend_from_slice(piece);
        let mut done = 0;
        while let Some(length) = self.next_length(done)? {
            let frame = self.buffer.get(done..done + length).unwrap_or_default();
            let json = decode(frame).ok_or_else(|| invalid("a frame with a wrong checksum"))?;
            done += length;
            on_frame(&json)?;
        }
        self.buffer.drain(..done);
        Ok(())
    }

    /// Returns the length of the frame at `start`, if all of it has been received.
    fn next_length(&self, start: usize) -> Result<Option<usize>, Error> {
        let rest = self.buffer.get(start..).unwrap_or_default();
        let Some(length) = number(rest, 0) else { return Ok(None) };
        if length < PRELUDE + CHECKSUM || length > self.max_frame {
            return Err(invalid("a frame with an impossible length"));
        }
        Ok((rest.len() >= length).then_some(length))
    }
}

/// Returns a frame as a JSON object, or `None` if it is invalid.
fn decode(frame: &[u8]) -> Option<Vec<u8>> {
    let (content, checksum) = frame.split_at_checked(frame.len() - CHECKSUM)?;
    let is_intact = number(frame, 8) == Some(crc32fast::hash(frame.get(..8)?) as usize)
        && number(checksum, 0) == Some(crc32fast::hash(content) as usize);
    if !is_intact {
        return None;
    }
    let (headers, payload) = content.get(PRELUDE..)?.split_at_checked(number(frame, 4)?)?;
    let (mut name, mut member, mut message) = ("", "event", None);
    for (header, value) in Headers(headers) {
        match header {
            ":event-type" => name = value,
            ":exception-type" | ":error-code" => (name, member) = (value, "exception"),
            // An error has no payload.
            ":error-message" => message = Some(value),
            _ => {}
        }
    }
    let mut out = Vec::with_capacity(payload.len() + 64);
    let mut object = Object::begin(&mut out);
    object.member("type", name);
    if payload.first() == Some(&b'{') {
        object.raw(member, payload);
    } else {
        let mut content = Object::begin(object.value(member));
        if let Some(message) = message {
            content.member("message", message);
        }
        content.end();
    }
    object.end();
    Some(out)
}

/// The string headers of a frame. Iteration ends at the first header of another type.
struct Headers<'a>(&'a [u8]);

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let (&length, rest) = self.0.split_first()?;
        let (name, rest) = rest.split_at_checked(length.into())?;
        let (&[STRING, high, low], rest) = rest.split_first_chunk()? else { return None };
        let (value, rest) = rest.split_at_checked(u16::from_be_bytes([high, low]).into())?;
        self.0 = rest;
        Some((std::str::from_utf8(name).ok()?, std::str::from_utf8(value).ok()?))
    }
}

/// Returns the big-endian number at a position.
fn number(bytes: &[u8], position: usize) -> Option<usize> {
    let number = bytes.get(position..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*number)).ok()
}

fn invalid(what: &str) -> Error {
    Error::new(ErrorCode::ProviderProtocol, format!("the provider sent {what}"))
}
