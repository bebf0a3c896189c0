//! The model's replies and rejections.

use serde_json::Value;

use super::answer::{WORD, document, encoding, end_of_words, events, start_of_words, words};
use super::script::{Route, Say, next, results, route};
use crate::job::{Ending, Format, Work};

/// Returns a request with a tool result.
fn request(format: Format, result: &str) -> String {
    let id = "call_0000000000000000012";
    match format {
        Format::OpenaiChat => format!(
            r#"{{"messages":[{{"role":"user"}},{{"role":"tool","tool_call_id":"{id}","content":"{result}"}}]}}"#
        ),
        Format::OpenaiResponses => format!(
            r#"{{"input":[{{"type":"function_call_output","call_id":"{id}","output":"{result}"}}]}}"#
        ),
        Format::AnthropicMessages => format!(
            r#"{{"messages":[{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{result}"}}]}}]}}"#
        ),
        Format::GeminiGenerate => format!(
            r#"{{"contents":[{{"parts":[{{"functionResponse":{{"id":"{id}","name":"add","response":{{"output":"{result}"}}}}}}]}}]}}"#
        ),
        Format::BedrockConverse => format!(
            r#"{{"messages":[{{"content":[{{"toolResult":{{"toolUseId":"{id}","status":"success","content":[{{"text":"{result}"}}]}}}}]}}]}}"#
        ),
    }
}

#[test]
fn the_last_result_has_the_number_of_results() {
    for format in Format::ALL {
        let marks = encoding(format).marks();
        assert_eq!(results(br#"{"messages":[{"role":"user"}]}"#, marks).unwrap(), 0);
        assert_eq!(results(request(format, "12").as_bytes(), marks).unwrap(), 12);
    }
}

#[test]
fn a_wrong_result_is_refused() {
    for format in Format::ALL {
        let marks = encoding(format).marks();
        let wrong = results(request(format, "13").as_bytes(), marks);
        assert_eq!(wrong.unwrap_err().to_string(), "the result of step 12 is 13");
        assert!(results(request(format, "error").as_bytes(), marks).is_err());
    }
}

#[test]
fn the_model_calls_the_tool_and_then_submits_the_result() {
    let work = Work::Tools { calls: 3, delay_ms: 0, ending: Ending::Finish };
    assert_eq!(next(work, 0).unwrap(), Say::Add(1));
    assert_eq!(next(work, 2).unwrap(), Say::Add(3));
    assert_eq!(next(work, 3).unwrap(), Say::Object(3, Ending::Finish));
    assert!(next(work, 4).is_err());
}

#[test]
fn paths_are_parsed_as_work() {
    for work in [
        Work::USUAL,
        Work::Tools { calls: 2, delay_ms: 700, ending: Ending::Finish },
        Work::Text { chunks: 10_000, per_write: 1 },
    ] {
        for (path, format) in [
            ("chat/completions", Format::OpenaiChat),
            ("responses", Format::OpenaiResponses),
            ("messages", Format::AnthropicMessages),
            ("models/bench:streamGenerateContent?alt=sse", Format::GeminiGenerate),
            ("model/bench/converse-stream", Format::BedrockConverse),
        ] {
            let path = format!("{}/{path}", work.path());
            assert_eq!(route(&path), Some(Route::Work(format, work)));
        }
    }
    assert_eq!(route("/seen"), Some(Route::Seen));
    assert_eq!(route("/v1/chat/completions"), None);
}

#[test]
fn every_reply_has_the_events_of_its_format() {
    let (finish, native) = (Say::Object(3, Ending::Finish), Say::Object(3, Ending::Native));
    for (format, of_call, of_text) in [
        (Format::OpenaiChat, 4, 4),
        (Format::OpenaiResponses, 7, 9),
        (Format::AnthropicMessages, 8, 7),
        (Format::GeminiGenerate, 2, 2),
        (Format::BedrockConverse, 6, 5),
    ] {
        for (say, expected) in [(Say::Add(1), of_call), (finish, of_call), (native, of_text)] {
            let mut out = Vec::new();
            events(say, encoding(format), &mut out).unwrap();
            let found = read(format, &out);
            assert_eq!(found.len(), expected, "{} {say:?}: {found:#?}", format.name());
        }
        let mut out = Vec::new();
        start_of_words(encoding(format), &mut out).unwrap();
        words(60, encoding(format), &mut out).unwrap();
        words(40, encoding(format), &mut out).unwrap();
        end_of_words(100, encoding(format), &mut out).unwrap();
        let (found, whole) = (read(format, &out), of_text - 1 + 100);
        assert_eq!(found.len(), whole, "{} in words", format.name());
        let word = Value::from(WORD).to_string();
        let pieces = found.iter().filter(|event| event.to_string().contains(&word));
        assert_eq!(pieces.count(), 100, "{} in words", format.name());
    }
}

#[test]
fn every_document_is_json() {
    for say in [Say::Add(1), Say::Object(3, Ending::Finish), Say::Object(3, Ending::Native)] {
        let mut out = Vec::new();
        document(say, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<Value>(body).expect(body);
    }
}

/// Returns the data of the events in a streamed response.
#[track_caller]
fn read(format: Format, response: &[u8]) -> Vec<Value> {
    let body = body(response);
    if format == Format::BedrockConverse {
        return frames(&body);
    }
    let text = String::from_utf8(body).unwrap();
    let text = text.replace("\r\n", "\n");
    assert!(text.ends_with("\n\n"), "the last event is incomplete");
    let mut found = Vec::new();
    for event in text.split_terminator("\n\n") {
        let mut lines = event.lines();
        let name = lines.next().and_then(|line| line.strip_prefix("event: "));
        let line = if name.is_some() { lines.next() } else { event.lines().next() };
        let data = line.and_then(|line| line.strip_prefix("data: ")).expect(event);
        assert_eq!(lines.next(), None, "{event}");
        if data != "[DONE]" {
            let data: Value = serde_json::from_str(data).expect(data);
            assert!(name.is_none() || data["type"].as_str() == name, "{event}");
            found.push(data);
        }
    }
    found
}

/// Returns the body of a response with chunked transfer encoding.
#[track_caller]
fn body(response: &[u8]) -> Vec<u8> {
    let end = memchr::memmem::find(response, b"\r\n\r\n").unwrap();
    let (mut rest, mut body) = (&response[end + 4..], Vec::new());
    loop {
        let end = memchr::memmem::find(rest, b"\r\n").unwrap();
        let length = std::str::from_utf8(&rest[..end]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        rest = &rest[end + 2..];
        body.extend_from_slice(&rest[..length]);
        assert_eq!(&rest[length..length + 2], b"\r\n");
        rest = &rest[length + 2..];
        if length == 0 {
            assert!(rest.is_empty());
            return body;
        }
    }
}

/// Parses the frames of an event stream, and checks their lengths, checksums and headers.
#[track_caller]
fn frames(mut stream: &[u8]) -> Vec<Value> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let mut found = Vec::new();
    while !stream.is_empty() {
        let length = number(&stream[..4]) as usize;
        let (frame, rest) = stream.split_at(length);
        let headers = number(&frame[4..8]) as usize;
        assert_eq!(number(&frame[8..12]), crc32fast::hash(&frame[..8]), "the prelude");
        let (content, checksum) = frame.split_at(length - 4);
        assert_eq!(number(checksum), crc32fast::hash(content), "the frame");
        let (mut headers, payload) = content[12..].split_at(headers);
        let mut names = Vec::new();
        while let Some((length, rest)) = headers.split_first() {
            let (name, rest) = rest.split_at(usize::from(*length));
            names.push(std::str::from_utf8(name).unwrap());
            assert_eq!(rest[0], 7, "the type of a text");
            let length = usize::from(u16::from_be_bytes([rest[1], rest[2]]));
            headers = &rest[3 + length..];
        }
        assert_eq!(names, [":event-type", ":content-type", ":message-type"]);
        found.push(serde_json::from_slice(payload).unwrap());
        stream = rest;
    }
    found
}
