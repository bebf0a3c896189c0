//! The rules for the reasoning of Claude models, for the Messages API and Amazon Bedrock.
//!
//! Newer Claude models sign reasoning together with the prompt, the tools and the messages that it followed. After a
//! change of any of them, such as a new prompt of the agent, the API rejects requests that contain the reasoning. A
//! beta feature makes the API leave such reasoning out instead.

use helix_agents_core::message::{Message, ReplyPart};
use serde_json::{Value, json};

use crate::reply_data;
use crate::wire_format::Call;

/// The name of the beta feature.
pub(crate) const BETA: &str = "thinking-binding-controls-2026-08-01";

/// The member of the reasoning settings that belongs to the beta feature.
const MEMBER: &str = "block_binding";

/// Returns `true` if the model binds reasoning and the request contains some. `bound_to` is the called
/// model if requests omit the reasoning of other models, and `None` otherwise.
pub(crate) fn contains_bound(call: &Call<'_>, bound_to: Option<&str>) -> bool {
    let has_reasoning = |message: &Message| {
        let Message::Assistant(reply) = message else { return false };
        let is_own = !reply_data::is_foreign(message, call.data_owner, bound_to);
        // Encrypted reasoning is a part that only the provider reads.
        let is_signed = |part| {
            matches!(part, ReplyPart::Thinking { data: Some(_), .. } | ReplyPart::Opaque { .. })
        };
        is_own && reply.parts().any(is_signed)
    };
    call.capabilities.is_some_and(|known| known.binds_reasoning)
        && reply_data::messages(call).iter().rev().any(|message| has_reasoning(message))
}

/// Completes the reasoning settings of a request so that the API drops invalid reasoning. The caller's choice takes
/// precedence. Settings that turn reasoning off do not support this and stay unchanged.
pub(crate) fn with_block_binding(thinking: Option<Value>) -> Value {
    // This is the default of the models.
    let mut thinking = thinking.unwrap_or_else(|| json!({"type": "adaptive"}));
    if let Value::Object(members) = &mut thinking
        && matches!(members.get("type").and_then(Value::as_str), Some("adaptive" | "enabled"))
    {
        let choice = || json!({"prefix_mismatch_behavior": "drop_block"});
        members.entry(MEMBER).or_insert_with(choice);
    }
    thinking
}

/// Returns `true` if the reasoning settings of a request need the beta feature.
pub(crate) fn needs_beta(thinking: &Value) -> bool {
    thinking.get(MEMBER).is_some_and(|choice| !choice.is_null())
}

/// Returns `true` if the API rejects a forced tool call with these settings, because they set a token budget for
/// reasoning.
pub(crate) fn excludes_forced_tool(thinking: &Value) -> bool {
    thinking.get("type").is_some_and(|kind| kind == "enabled")
}
