//! The values that a request sends back from earlier replies: signatures, encrypted reasoning and ids.
//!
//! The earlier replies of a case are read by an adapter, stored as messages and loaded again. The next request must
//! contain every value that the recorded request sent back, in the same order.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use helix_agents_core::event::ModelReply;
use helix_agents_core::llm::LlmResponse;
use helix_agents_core::message::{AssistantMessage, Message, SharedMessage, ToolResultMessage};
use serde_json::Value;

use crate::case::{Case, Exchange, Reply};
use crate::compare::is_malformed;
use crate::play;
use crate::variant::Variant;

/// The comparison of one request.
pub(crate) struct Replay {
    /// The number of values that the recorded request sent back.
    pub(crate) values: usize,
    /// The first value that is missing or out of order.
    pub(crate) missing: Option<String>,
}

/// Compares the request of an exchange with the recorded one. Returns `None` if it sent nothing back.
pub(crate) async fn compare(case: &Case, number: usize) -> Result<Option<Replay>> {
    let exchange = case.exchanges.get(number).context("no such exchange")?;
    let pointers = exchange.expected.get("replays").and_then(Value::as_array);
    let (Some(pointers), Some(recorded)) = (pointers, &exchange.request) else { return Ok(None) };
    let Some(format) = play::format(&exchange.api) else { return Ok(None) };
    let mut messages = vec![play::question()];
    let mut dropped = HashSet::new();
    for earlier in case.exchanges.iter().take(number) {
        // The recorded client kept this reply, but an adapter drops it and asks again.
        if let (true, Reply::Document(reply)) = (is_malformed(&earlier.expected), &earlier.reply) {
            let mut parts = Vec::new();
            collect(reply, &mut parts);
            dropped.extend(parts.into_iter().map(normalised));
        }
        if let Some(message) = reply(earlier).await? {
            add(message, &mut messages)?;
        }
    }
    let options = play::CallOptions::recorded(exchange);
    let body = play::request(&format, exchange, &messages, &options).await?;
    let body = body.context("the adapter rejects the recorded settings")?;
    let mut sent = Vec::new();
    collect(&body, &mut sent);
    let mut sent = sent.into_iter().map(normalised);
    let mut replay = Replay { values: 0, missing: None };
    for pointer in pointers.iter().filter_map(Value::as_str) {
        let value = recorded.pointer(pointer).with_context(|| format!("no value at {pointer}"))?;
        let mut parts = Vec::new();
        collect(value, &mut parts);
        let parts = parts.into_iter().map(normalised);
        for part in parts.filter(|part| !dropped.contains(part)) {
            replay.values += 1;
            if replay.missing.is_none() && !sent.any(|value| value == part) {
                replay.missing = Some(format!("{pointer} is not sent back"));
            }
        }
    }
    Ok(Some(replay))
}

/// Returns the message of a reply, stored and loaded again, or `None` if the reply has none.
pub(crate) async fn reply(exchange: &Exchange) -> Result<Option<AssistantMessage>> {
    let (Some(format), Some(variant)) =
        (play::format(&exchange.api), Variant::all(exchange).into_iter().next())
    else {
        return Ok(None);
    };
    let response: LlmResponse = play::play(&format, exchange, &variant).await?;
    let Some(message) = ModelReply::from_response(1, response, 0).message else { return Ok(None) };
    let stored = serde_json::to_string(&*message)?;
    Ok(Some(serde_json::from_str(&stored)?))
}

/// Adds a reply, and results for its calls or another question.
pub(crate) fn add(message: AssistantMessage, messages: &mut Vec<SharedMessage>) -> Result<()> {
    let calls = message.tool_calls.clone();
    messages.push(Message::Assistant(Arc::new(message)).into());
    for call in &calls {
        let result = serde_json::from_value::<ToolResultMessage>(serde_json::json!({
            "tool_call_id": call.id,
            "provider_id": call.provider_id,
            "tool_name": call.name,
            "content": "found",
        }))?;
        messages.push(Message::Tool(result).into());
    }
    if calls.is_empty() {
        messages.push(play::question());
    }
    Ok(())
}

/// Collects the texts of a value in their order.
fn collect<'a>(value: &'a Value, out: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => out.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        Value::Object(members) => members.values().for_each(|member| collect(member, out)),
        _ => {}
    }
}

/// Returns a text in the usual alphabet of base64, because clients send signatures back in either.
fn normalised(text: &str) -> String {
    text.trim_end_matches('=').replace('-', "+").replace('_', "/")
}
