//! The reasons why a model stopped, of each API. `stream.rs` has those of Chat Completions.

use helix_agents_core::step::StopReason;
use helix_agents_llm::ApiFormat;
use serde_json::{Value, json};

use crate::support::{Ask, Reply, Server, adapter_of};

/// Checks the stop reasons of complete replies with a text.
async fn check(format: ApiFormat, table: &[(Value, &str, StopReason)]) {
    for (document, raw, meaning) in table {
        let server = Server::start(vec![Reply::json(&document.to_string())]).await;
        let adapter = adapter_of(&server, format.clone());
        let response = Ask::default().answer(&adapter).await;
        assert_eq!(response.result.stop_reason(), Some(*meaning), "{raw}");
        assert_eq!(response.raw_stop_reason.as_deref(), Some(*raw));
    }
}

#[tokio::test]
async fn every_stop_reason_of_messages_has_its_meaning() {
    let reply = |raw: &'static str, meaning| {
        let text = json!({"type": "text", "text": "a"});
        (json!({"type": "message", "content": [text], "stop_reason": raw}), raw, meaning)
    };
    let table = [
        reply("end_turn", StopReason::EndTurn),
        reply("tool_use", StopReason::ToolUse),
        reply("max_tokens", StopReason::MaxTokens),
        reply("model_context_window_exceeded", StopReason::MaxTokens),
        reply("stop_sequence", StopReason::StopSequence),
        reply("refusal", StopReason::Refusal),
        reply("pause_turn", StopReason::Pause),
        reply("solar_flare", StopReason::Unknown),
    ];
    check(ApiFormat::AnthropicMessages, &table).await;
}

#[tokio::test]
async fn every_stop_reason_of_responses_has_its_meaning() {
    let reply = |status: &str, reason: Option<&str>, raw: &'static str, meaning| {
        let content = json!([{"type": "output_text", "text": "a", "annotations": []}]);
        let message = json!({"type": "message", "role": "assistant", "content": content});
        let details = reason.map(|reason| json!({ "reason": reason }));
        let document = json!({"object": "response", "status": status, "output": [message],
            "incomplete_details": details});
        (document, raw, meaning)
    };
    let cut = Some("max_output_tokens");
    let table = [
        reply("completed", None, "completed", StopReason::EndTurn),
        reply("incomplete", cut, "max_output_tokens", StopReason::MaxTokens),
        reply("incomplete", Some("content_filter"), "content_filter", StopReason::ContentFilter),
        reply("incomplete", Some("solar_flare"), "solar_flare", StopReason::Unknown),
    ];
    check(ApiFormat::OpenAiResponses, &table).await;
}

#[tokio::test]
async fn every_stop_reason_of_gemini_has_its_meaning() {
    let reply = |raw: &'static str, meaning| {
        let content = json!({"role": "model", "parts": [{"text": "a"}]});
        (json!({"candidates": [{"content": content, "finishReason": raw}]}), raw, meaning)
    };
    let table = [
        reply("STOP", StopReason::EndTurn),
        reply("MAX_TOKENS", StopReason::MaxTokens),
        reply("SAFETY", StopReason::ContentFilter),
        reply("RECITATION", StopReason::ContentFilter),
        reply("SOLAR_FLARE", StopReason::Unknown),
    ];
    check(ApiFormat::GeminiGenerate, &table).await;
}

#[tokio::test]
async fn every_stop_reason_of_converse_has_its_meaning() {
    let reply = |raw: &'static str, meaning| {
        let message = json!({"role": "assistant", "content": [{"text": "a"}]});
        (json!({"output": {"message": message}, "stopReason": raw}), raw, meaning)
    };
    let table = [
        reply("end_turn", StopReason::EndTurn),
        reply("tool_use", StopReason::ToolUse),
        reply("max_tokens", StopReason::MaxTokens),
        reply("stop_sequence", StopReason::StopSequence),
        reply("guardrail_intervened", StopReason::ContentFilter),
        reply("content_filtered", StopReason::ContentFilter),
        reply("solar_flare", StopReason::Unknown),
    ];
    check(ApiFormat::BedrockConverse, &table).await;
}
