//! Frames of the event stream of AWS.

use serde_json::Value;

/// Returns a frame.
pub(crate) fn frame(headers: &[(&str, &str)], payload: &Value) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (name, value) in headers {
        encoded.push(u8::try_from(name.len()).unwrap());
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(7);
        encoded.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        encoded.extend_from_slice(value.as_bytes());
    }
    let payload = payload.to_string();
    let length = u32::try_from(12 + encoded.len() + payload.len() + 4).unwrap();
    let mut out = length.to_be_bytes().to_vec();
    out.extend_from_slice(&u32::try_from(encoded.len()).unwrap().to_be_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(&encoded);
    out.extend_from_slice(payload.as_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out
}

/// Returns the frame of an event.
pub(crate) fn event_frame(kind: &str, payload: &Value) -> Vec<u8> {
    frame(&[(":event-type", kind), (":message-type", "event")], payload)
}
