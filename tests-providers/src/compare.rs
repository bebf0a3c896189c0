//! Comparing what an adapter read with the recorded meaning of a reply.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::ModelReply;
use helix_agents_core::json::Json;
use helix_agents_core::llm::LlmResponse;
use helix_agents_core::message::{Arguments, AssistantMessage, ReplyPart};
use helix_agents_core::step::StepResult;
use serde_json::{Value, json};

/// Returns the differences between a response and the expectation, as sentences.
pub(crate) fn differences(response: &LlmResponse, expected: &Value) -> Vec<String> {
    let mut found = Vec::new();
    // An adapter asks again for a reply that the provider reports as malformed.
    if is_malformed(expected) {
        let StepResult::Error { error, .. } = &response.result else {
            found.push("a malformed reply is no error".to_owned());
            return found;
        };
        if !error.is(ErrorCode::ProviderProtocol) {
            found.push(format!("the error of a malformed reply is {}", error.code));
        }
        return found;
    }
    let mut check = |member: &str, actual: Value| {
        let expected = expected.get(member).cloned().unwrap_or(Value::Null);
        if actual != expected {
            found.push(format!("{member} is {actual} instead of {expected}"));
        }
    };
    check("outcome", outcome(response));
    if outcome(response) != "message" {
        return found;
    }
    let stop = response.result.stop_reason().map(|stop| json!(stop));
    check("stop", stop.unwrap_or_default());
    let (actual, expected_usage) = (usage(response), without_zeroes(expected.get("usage")));
    if actual != expected_usage {
        found.push(format!("usage is {actual} instead of {expected_usage}"));
    }
    if let StepResult::StructuredOutput { output, .. } = &response.result {
        let text = expected.get("text").and_then(Value::as_str).unwrap_or_default();
        if serde_json::from_str::<Value>(text).ok() != Some(output.to_value()) {
            found.push(format!("the output is {} instead of {text}", output.text()));
        }
        return found;
    }
    let reply = ModelReply::from_response(1, response.clone(), 0);
    let message = reply.message.as_deref().cloned().unwrap_or_default();
    let refusal = expected.get("refusal").and_then(Value::as_str).unwrap_or_default();
    let own = expected.get("text").and_then(Value::as_str).unwrap_or_default();
    let (actual, expected_text) = (text(&message), format!("{own}{refusal}"));
    if actual != expected_text {
        found.push(format!("text is {actual:?} instead of {expected_text:?}"));
    }
    let expected_calls = expected.get("calls").and_then(Value::as_array);
    let expected_calls = expected_calls.map(Vec::as_slice).unwrap_or_default();
    let calls: Vec<Value> = calls(&message).collect();
    if calls.len() != expected_calls.len() {
        found.push(format!("{} calls instead of {}", calls.len(), expected_calls.len()));
    }
    for (mut call, expected) in calls.into_iter().zip(expected_calls) {
        // A call without an id gets one.
        if expected.get("id").is_none() {
            call.as_object_mut().map(|call| call.remove("id"));
        }
        // The input of a custom tool becomes an argument.
        let mut expected = expected.clone();
        if let Some(members) = expected.as_object_mut()
            && let Some(text) = members.remove("text")
        {
            members.insert("arguments".to_owned(), json!({ "input": text }));
        }
        if call != expected {
            found.push(format!("a call is {call} instead of {expected}"));
        }
    }
    let actual = thinking(&message);
    let expected_thinking = expected.get("thinking").map_or_else(Vec::new, signatures);
    if actual != expected_thinking {
        found.push(format!("thinking is {actual:?} instead of {expected_thinking:?}"));
    }
    found
}

fn outcome(response: &LlmResponse) -> Value {
    match &response.result {
        StepResult::Error { error, .. } if error.is(ErrorCode::ProviderStreamCut) => {
            "broken".into()
        }
        StepResult::Error { .. } => "error".into(),
        _ => "message".into(),
    }
}

/// Returns `true` for a reply that the provider reports as malformed.
pub(crate) fn is_malformed(expected: &Value) -> bool {
    expected.get("stop").is_some_and(|stop| stop == "error")
}

/// Returns the token counts, without zeroes.
fn usage(response: &LlmResponse) -> Value {
    let usage = &response.usage;
    let counts = [
        ("input", usage.input_tokens),
        ("output", usage.output_tokens),
        ("cache_read", usage.cached_tokens),
        ("cache_write", usage.cache_write_tokens),
        ("reasoning", usage.reasoning_tokens),
    ];
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts: serde_json::Map<String, Value> =
        counts.map(|(name, count)| (name.to_owned(), count.into())).collect();
    if counts.is_empty() { Value::Null } else { counts.into() }
}

fn without_zeroes(usage: Option<&Value>) -> Value {
    let mut usage = usage.and_then(Value::as_object).cloned().unwrap_or_default();
    usage.retain(|_, count| *count != 0);
    if usage.is_empty() { Value::Null } else { usage.into() }
}

fn text(message: &AssistantMessage) -> String {
    let texts = message.parts().filter_map(|part| match part {
        ReplyPart::Text { text, .. } => Some(text),
        _ => None,
    });
    texts.collect()
}

fn calls(message: &AssistantMessage) -> impl Iterator<Item = Value> {
    message.parts().filter_map(|part| {
        let ReplyPart::Call { call, data } = part else { return None };
        let (key, arguments) = match &call.arguments {
            Arguments::Json(arguments) => ("arguments", arguments.to_value()),
            Arguments::Malformed(text) => ("arguments_malformed", text.as_str().into()),
        };
        let mut described = json!({"name": call.name, "id": call.wire_id(), key: arguments});
        let signature = data.map(Json::to_value).and_then(|data| kept(&data));
        if let (Some(signature), Some(members)) = (signature, described.as_object_mut()) {
            members.insert("signature".to_owned(), signature.into());
        }
        Some(described)
    })
}

/// Returns what has to be sent back with each block of reasoning, and with each signed text.
fn thinking(message: &AssistantMessage) -> Vec<String> {
    let parts = message.parts().filter_map(|part| match part {
        ReplyPart::Thinking { data, .. } | ReplyPart::Text { data, .. } => kept(&data?.to_value()),
        ReplyPart::Opaque { data } => redacted(&data.to_value()),
        _ => None,
    });
    parts.collect()
}

/// Returns the reasoning of an opaque part that only the provider can read.
fn redacted(part: &Value) -> Option<String> {
    let is_redacted = part.get("type").is_some_and(|kind| kind == "redacted_thinking");
    let anthropic = part.get("data").filter(|_| is_redacted);
    let data = anthropic.or_else(|| part.pointer("/reasoningContent/redactedContent"));
    data?.as_str().map(str::to_owned)
}

/// Returns the same of an expectation.
fn signatures(expected: &Value) -> Vec<String> {
    expected.as_array().into_iter().flatten().filter_map(kept).collect()
}

/// Returns the opaque member of a part.
fn kept(part: &Value) -> Option<String> {
    let names = ["signature", "thoughtSignature", "redacted", "encrypted", "encrypted_content"];
    let mut found = names.into_iter().filter_map(|name| part.get(name));
    found.find_map(|value| value.as_str().map(str::to_owned))
}
