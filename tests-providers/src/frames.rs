//! The binary frames of AWS's event streams: encoding, and division of a stream into frames.

/// The bytes of a frame before its headers: two lengths and a checksum.
const PRELUDE: usize = 12;

/// The bytes of the checksum at the end of a frame.
const CHECKSUM: usize = 4;

/// The type of a header whose value is a string.
const STRING: u8 = 7;

/// Encodes headers with string values.
pub(crate) fn headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in headers {
        out.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        out.extend_from_slice(name.as_bytes());
        out.push(STRING);
        out.extend_from_slice(&u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(value.as_bytes());
    }
    out
}

/// Encodes a frame with encoded headers.
pub(crate) fn encode(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX).to_be_bytes();
    let mut out = Vec::with_capacity(PRELUDE + headers.len() + payload.len() + CHECKSUM);
    out.extend_from_slice(&length(PRELUDE + headers.len() + payload.len() + CHECKSUM));
    out.extend_from_slice(&length(headers.len()));
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(headers);
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out
}

/// Divides an intact stream into the headers and the payloads of its frames.
pub(crate) fn divide(mut stream: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((headers, payload, rest)) = first(stream) {
        frames.push((headers.to_vec(), payload.to_vec()));
        stream = rest;
    }
    frames
}

fn first(stream: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (frame, rest) = stream.split_at_checked(number(stream, 0)?)?;
    let content = frame.get(PRELUDE..frame.len().checked_sub(CHECKSUM)?)?;
    let (headers, payload) = content.split_at_checked(number(frame, 4)?)?;
    Some((headers, payload, rest))
}

/// Returns the big-endian number at a position.
fn number(bytes: &[u8], position: usize) -> Option<usize> {
    let number = bytes.get(position..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*number)).ok()
}
