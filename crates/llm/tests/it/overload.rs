//! Failures in the middle of a stream: repeated before the first output, and not by the adapter afterwards.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::step::StopReason;
use helix_agents_llm::ApiFormat;
use serde_json::{Value, json};

use crate::support::{Ask, Reply, Server, adapter_of, content, failure};

/// Returns the events of a reply with the text `Yes.`, and an event that reports an overload.
fn events(format: &ApiFormat) -> (Vec<Value>, Value) {
    match format {
        ApiFormat::AnthropicMessages => (
            vec![
                json!({"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Yes."}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
                json!({"type": "message_stop"}),
            ],
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ),
        ApiFormat::OpenAiResponses => {
            let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Yes.", "annotations": []}]});
            (
                vec![
                    json!({"type": "response.created", "response": {"model": "m"}}),
                    json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Yes."}),
                    json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
                    json!({"type": "response.completed", "response": {"status": "completed", "usage": {}}}),
                ],
                json!({"type": "error", "code": "server_error", "message": "Overloaded"}),
            )
        }
        _ => (
            vec![
                json!({"candidates": [{"content": {"parts": [{"text": "Yes."}]}}]}),
                json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]}),
            ],
            json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "Overloaded"}}),
        ),
    }
}

fn reply<'a>(events: impl IntoIterator<Item = &'a Value>) -> Reply {
    let lines: Vec<String> = events.into_iter().map(|event| format!("data: {event}\n\n")).collect();
    Reply::events(&lines)
}

const APIS: [ApiFormat; 3] =
    [ApiFormat::AnthropicMessages, ApiFormat::OpenAiResponses, ApiFormat::GeminiGenerate];

#[tokio::test]
async fn an_overload_before_the_first_output_is_repeated() {
    for format in APIS {
        let (good, overload) = events(&format);
        let server = Server::start(vec![reply([&overload]), reply(&good)]).await;
        let adapter = adapter_of(&server, format.clone());
        let ask = Ask { max_retries: 1, ..Ask::default() };
        let response = ask.answer(&adapter).await;
        assert_eq!(content(&response), "Yes.", "{format:?}");
        assert_eq!(response.failed_attempts.len(), 1, "{format:?}");
        let code = &response.failed_attempts[0].code;
        assert_eq!(&**code, ErrorCode::ProviderUnavailable.as_str(), "{format:?}");
        assert_eq!(server.requests().len(), 2, "{format:?}");
    }
}

#[tokio::test]
async fn an_overload_after_the_first_output_is_not_repeated() {
    for format in APIS {
        let (good, overload) = events(&format);
        let text = good.iter().position(|event| event.to_string().contains("Yes.")).unwrap();
        let broken = good[..=text].iter().chain([&overload]);
        let server = Server::start(vec![reply(broken), reply(&good)]).await;
        let adapter = adapter_of(&server, format.clone());
        let ask = Ask { max_retries: 1, ..Ask::default() };
        let response = ask.answer(&adapter).await;
        let (error, should_stop) = failure(&response);
        assert_eq!(&*error.code, ErrorCode::ProviderUnavailable.as_str(), "{format:?}");
        assert!(!should_stop, "{format:?}: the run may repeat the step");
        assert_eq!(server.requests().len(), 1, "{format:?}");
    }
}

#[tokio::test]
async fn a_reply_that_ends_before_its_last_event_is_an_error() {
    for format in APIS {
        let (good, _) = events(&format);
        let text = good.iter().position(|event| event.to_string().contains("Yes.")).unwrap();
        let server = Server::start(vec![reply(&good[..=text])]).await;
        let adapter = adapter_of(&server, format.clone());
        let response = Ask::default().answer(&adapter).await;
        let (error, _) = failure(&response);
        assert_eq!(&*error.code, ErrorCode::ProviderStreamCut.as_str(), "{format:?}");
    }
}

/// Gemini sends parts after a finish reason, and then another one.
#[tokio::test]
async fn parts_after_a_finish_reason_are_not_lost_with_the_connection() {
    let document = |part: &Value, reason: Option<&str>| json!({"candidates": [{"content": {"parts": [part]}, "finishReason": reason}]});
    let (first, second) = (json!({"text": "Ye"}), json!({"text": "s."}));
    let open = json!({"functionCall": {"name": "lookup", "willContinue": true}});
    let table = [
        (vec![document(&first, Some("STOP")), document(&second, Some("STOP"))], true),
        (vec![document(&first, Some("STOP")), document(&second, None)], false),
        (vec![document(&open, Some("STOP"))], false),
    ];
    for (documents, is_whole) in table {
        let lines = documents.iter().map(|document| format!("data: {document}\n\n"));
        let lines: Vec<String> = lines.collect();
        let server = Server::start(vec![Reply::broken(&lines), Reply::events(&lines)]).await;
        let format = ApiFormat::GeminiGenerate;
        let adapter = adapter_of(&server, format);
        let response = Ask::default().answer(&adapter).await;
        if is_whole {
            assert_eq!(content(&response), "Yes.");
        } else {
            assert_eq!(&*failure(&response).0.code, ErrorCode::ProviderStreamCut.as_str());
        }
        // An orderly end of the stream is the end of the reply.
        let response = Ask::default().answer(&adapter).await;
        assert_ne!(response.result.stop_reason(), Some(StopReason::Error));
    }
}
