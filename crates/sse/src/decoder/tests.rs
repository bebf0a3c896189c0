//! The rules of the standard for server-sent events, with every split of the stream.

use helix_agents_core::error::{Error, ErrorCode, Result};
use proptest::prelude::*;

use super::Decoder;

const LIMIT: usize = 1 << 20;

fn decode<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut decoder = Decoder::new(LIMIT);
    let mut events = Vec::new();
    for read in reads {
        feed(&mut decoder, read, &mut events).unwrap();
    }
    events
}

fn feed(decoder: &mut Decoder, read: &[u8], events: &mut Vec<String>) -> Result<()> {
    decoder.feed(read, &mut |event| {
        events.push(String::from_utf8_lossy(event.data).into_owned());
        Ok(())
    })
}

/// Decodes the stream in one read, in reads of one byte, and in two reads split at every position.
#[track_caller]
fn check(stream: &str, expected: &[&str]) {
    let bytes = stream.as_bytes();
    assert_eq!(decode([bytes]), expected, "in one read");
    assert_eq!(decode(bytes.chunks(1)), expected, "byte by byte");
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(decode([left, right]), expected, "cut at {at}");
    }
}

#[test]
fn lines_end_with_line_feeds_carriage_returns_or_both() {
    check("data: a\n\ndata: b\n\n", &["a", "b"]);
    check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
    // A lone carriage return at the very end is also a line end.
    check("data: a\r\rdata: b\r\r", &["a", "b"]);
    check("data: a\r\n\ndata: b\n\r\n", &["a", "b"]);
}

#[test]
fn lines_of_data_are_joined_by_line_feeds() {
    check("data: a\ndata: b\ndata:\ndata: c\n\n", &["a\nb\n\nc"]);
    check("data: a\nid: 7\ndata: b\n\n", &["a\nb"]);
}

#[test]
fn comments_and_other_fields_are_skipped() {
    check(": hello\n\n:\ndata: a\n: in between\nevent: x\nretry: 1\n\n", &["a"]);
    check("event: ping\n\ndatabase: no\ndata: a\n\n", &["a"]);
}

#[test]
fn one_space_after_the_colon_is_dropped_and_the_colon_may_be_missing() {
    check("data:a\n\ndata:  b\n\ndata\n\n", &["a", " b", ""]);
}

#[test]
fn a_byte_order_mark_is_skipped_only_at_the_begin() {
    check("\u{feff}data: a\n\n", &["a"]);
    check("data: a\n\n\u{feff}data: b\n\n", &["a"]);
    check("\u{feff}\n\ndata: a\n\n", &["a"]);
}

#[test]
fn text_in_any_script_survives_cuts_within_characters() {
    check("data: żółć 🦀 日本\n\n", &["żółć 🦀 日本"]);
}

#[test]
fn an_event_without_its_blank_line_is_held_back_until_the_end() {
    let mut decoder = Decoder::new(LIMIT);
    let mut events = Vec::new();
    feed(&mut decoder, b"data: a\n\ndata: [DONE]", &mut events).unwrap();
    assert_eq!(events, ["a"]);
    decoder
        .finish::<Error>(&mut |event| {
            events.push(String::from_utf8_lossy(event.data).into_owned());
            Ok(())
        })
        .unwrap();
    assert_eq!(events, ["a", "[DONE]"]);
}

#[test]
fn an_event_over_the_limit_is_rejected_for_every_split() {
    let stream = [b"data: ".as_slice(), &[b'x'; 100], b"\n\n"].concat();
    for size in [1, 7, 64, 1000] {
        let mut decoder = Decoder::new(50);
        let result: Result<()> =
            stream.chunks(size).try_for_each(|read| feed(&mut decoder, read, &mut Vec::new()));
        assert_eq!(result.unwrap_err().code(), ErrorCode::TooLarge, "{size}");
    }
}

#[test]
fn endless_comments_are_not_kept() {
    let mut decoder = Decoder::new(50);
    for _ in 0..1000 {
        feed(&mut decoder, b": keep-alive\n", &mut Vec::new()).unwrap();
    }
}

#[test]
fn an_event_has_the_last_name_before_its_end_for_every_split() {
    let stream = "event: a\nevent: first\ndata: 1\n\ndata: 2\n\nevent: no data\n\n: x\nid: 1\nevent:late\ndata: 3\n\n\
                  data: 4\nevent: after\ndata: 5\n\nevents: x\ndata: 6\n\n";
    let expected = ["first 1", " 2", "late 3", "after 4\n5", " 6"];
    for at in 0..=stream.len() {
        let (left, right) = stream.as_bytes().split_at(at);
        let (mut decoder, mut events) = (Decoder::new(LIMIT), Vec::new());
        for read in [left, right] {
            let fed: Result<()> = decoder.feed(read, &mut |event| {
                let text = String::from_utf8_lossy;
                events.push(format!("{} {}", text(event.name), text(event.data)));
                Ok(())
            });
            fed.unwrap();
        }
        assert_eq!(events, expected, "cut at {at}");
    }
}

#[test]
fn an_error_of_the_receiver_ends_the_feed() {
    let mut decoder = Decoder::new(LIMIT);
    let mut seen = 0;
    let result = decoder.feed(b"data: a\n\ndata: b\n\n", &mut |_| {
        seen += 1;
        Err(super::too_large(1))
    });
    assert!(result.is_err());
    assert_eq!(seen, 1);
}

/// The standard's algorithm, written as simply as possible.
fn reference(stream: &str) -> Vec<String> {
    let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    let text = stream.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop(); // the text after the last line end is not a line
    let (mut events, mut data) = (Vec::new(), Vec::new());
    for line in lines {
        if line.is_empty() {
            if !data.is_empty() {
                events.push(std::mem::take(&mut data).join("\n"));
            }
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            data.push(value.strip_prefix(' ').unwrap_or(value));
        }
    }
    events
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\n".to_owned()),
        Just("\r".to_owned()),
        Just("\r\n".to_owned()),
        Just("data:".to_owned()),
        Just("data: {\"a\":1}\n\n".to_owned()),
        Just(":".to_owned()),
        Just(" ".to_owned()),
        Just("event: x".to_owned()),
        Just("\u{feff}".to_owned()),
        "[a-dé🦀]{0,6}",
    ]
}

proptest! {
    #[test]
    fn any_split_of_a_stream_gives_the_events_of_the_standard(
        pieces in prop::collection::vec(piece(), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let stream = pieces.concat();
        let bytes = stream.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let reads = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        let expected = reference(&stream);
        prop_assert_eq!(decode(reads), expected.clone());
        prop_assert_eq!(decode([bytes]), expected);
    }
}
