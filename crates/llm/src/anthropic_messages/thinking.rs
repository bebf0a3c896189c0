//! The settings of reasoning.

use helix_agents_core::llm::{ThinkingAmount, ThinkingConfig, ThinkingDisplay};
use serde_json::{Map, Value};

use super::AnthropicMessages;
use crate::claude_reasoning;
use crate::wire_format::Call;

/// The member of a request with the settings.
pub(super) const MEMBER: &str = "thinking";

/// Returns the settings of a call, if it has any.
pub(super) fn settings(call: &Call<'_>) -> Option<Value> {
    let settings = match call.option::<AnthropicMessages>(MEMBER) {
        Some(settings) => Some(settings.clone()),
        None => call.request.config.thinking.and_then(|thinking| of_config(thinking, call)),
    };
    if claude_reasoning::contains_bound(call, None) {
        return Some(claude_reasoning::with_block_binding(settings));
    }
    settings
}

fn of_config(thinking: ThinkingConfig, call: &Call<'_>) -> Option<Value> {
    let is_adaptive = call.capabilities.is_some_and(|known| known.adaptive);
    let kind = match thinking.amount {
        ThinkingAmount::Off => "disabled",
        ThinkingAmount::Budget(_) => "enabled",
        _ if is_adaptive => "adaptive",
        _ => return None,
    };
    let mut members = Map::from_iter([("type".to_owned(), kind.into())]);
    if let ThinkingAmount::Budget(tokens) = thinking.amount {
        members.insert("budget_tokens".to_owned(), tokens.into());
    }
    let display = match thinking.display {
        // Without reasoning, there is nothing to display.
        _ if thinking.amount == ThinkingAmount::Off => None,
        ThinkingDisplay::Summarized => Some("summarized"),
        ThinkingDisplay::Omitted => Some("omitted"),
        _ => None,
    };
    members.extend(display.map(|display| ("display".to_owned(), display.into())));
    Some(Value::Object(members))
}
