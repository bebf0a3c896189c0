//! The model's replies and rejections.

use super::answer::{document, encoding, events};
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
fn the_data_of_every_event_is_json() {
    let says = [Say::Add(1), Say::Object(3, Ending::Finish), Say::Object(3, Ending::Native)];
    for format in Format::ALL {
        for say in says {
            let mut out = Vec::new();
            events(say, encoding(format), &mut out).unwrap();
            let text = String::from_utf8_lossy(&out);
            let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
            for data in data.filter(|data| *data != "[DONE]") {
                serde_json::from_str::<serde_json::Value>(data).expect(data);
            }
        }
    }
    for say in says {
        let mut out = Vec::new();
        document(say, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (_, body) = text.split_once("\r\n\r\n").unwrap();
        serde_json::from_str::<serde_json::Value>(body).expect(body);
    }
}
