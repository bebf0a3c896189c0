//! The settings of reasoning.

use helix_agents_core::llm::{ThinkingAmount, ThinkingConfig, ThinkingDisplay};
use serde_json::{Map, Value};

use super::{API, AnthropicMessages};
use crate::bound_thinking;
use crate::wire_format::Call;

/// The member of a request with the settings.
pub(super) const MEMBER: &str = "thinking";

/// Returns the settings of a call, if it has any.
pub(super) fn settings(call: &Call<'_>) -> Option<Value> {
    let own = call.options::<AnthropicMessages>().find(|(key, _)| *key == MEMBER);
    let settings = match own {
        Some((_, settings)) => Some(settings.clone()),
        None => call.request.config.thinking.and_then(|thinking| of_config(thinking, call)),
    };
    if bound_thinking::is_sent(call, API, None) {
        return Some(bound_thinking::complete(settings));
    }
    settings
}

/// Returns `true` if the settings exclude a forced call of a tool.
pub(super) fn excludes_forced_tool(call: &Call<'_>) -> bool {
    settings(call)
        .is_some_and(|settings| settings.get("type").is_some_and(|kind| kind == "enabled"))
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
