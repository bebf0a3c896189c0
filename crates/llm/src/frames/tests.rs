//! Frames, whole and in pieces, intact and damaged.

use helix_agents_core::error::{Error, ErrorCode};

use super::FrameDecoder;

/// Returns a frame with these headers and this payload.
fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (name, value) in headers {
        encoded.push(u8::try_from(name.len()).unwrap());
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(7);
        encoded.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        encoded.extend_from_slice(value.as_bytes());
    }
    let length = u32::try_from(12 + encoded.len() + payload.len() + 4).unwrap();
    let mut out = length.to_be_bytes().to_vec();
    out.extend_from_slice(&u32::try_from(encoded.len()).unwrap().to_be_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out.extend_from_slice(&encoded);
    out.extend_from_slice(payload.as_bytes());
    out.extend_from_slice(&crc32fast::hash(&out).to_be_bytes());
    out
}

fn decoded(pieces: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Result<Vec<String>, Error> {
    let mut decoder = FrameDecoder::new(1000);
    let mut found = Vec::new();
    for piece in pieces {
        decoder.feed(piece.as_ref(), |json| {
            found.push(String::from_utf8(json.to_vec()).unwrap());
            Ok::<(), Error>(())
        })?;
    }
    Ok(found)
}

#[test]
fn frames_are_decoded_whole_and_in_pieces() {
    let mut stream =
        frame(&[(":event-type", "messageStart"), (":message-type", "event")], "{\"a\":1}");
    stream.extend(frame(&[(":exception-type", "throttlingException")], "{\"message\":\"Slow.\"}"));
    stream.extend(frame(&[(":error-code", "Internal"), (":error-message", "Broken.")], ""));
    stream.extend(frame(&[], "no JSON"));
    let expected = [
        r#"{"type":"messageStart","event":{"a":1}}"#,
        r#"{"type":"throttlingException","exception":{"message":"Slow."}}"#,
        r#"{"type":"Internal","exception":{"message":"Broken."}}"#,
        r#"{"type":"","event":{}}"#,
    ];
    assert_eq!(decoded([&stream]).unwrap(), expected);
    for size in [1, 7, 13] {
        assert_eq!(decoded(stream.chunks(size)).unwrap(), expected, "pieces of {size} bytes");
    }
}

#[test]
fn every_damaged_byte_is_noticed_or_leaves_the_frame_incomplete() {
    let intact = frame(&[(":event-type", "messageStop")], "{\"stopReason\":\"end_turn\"}");
    for place in 0..intact.len() {
        let mut damaged = intact.clone();
        damaged[place] ^= 0x01;
        match decoded([&damaged]) {
            Ok(found) => assert_eq!(found, Vec::<String>::new(), "byte {place}"),
            Err(error) => assert_eq!(error.code(), ErrorCode::ProviderProtocol),
        }
    }
}

#[test]
fn the_length_of_a_frame_is_limited() {
    for length in [0_u32, 15, 1001, u32::MAX] {
        let error = decoded([length.to_be_bytes()]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ProviderProtocol, "{length}");
    }
}
