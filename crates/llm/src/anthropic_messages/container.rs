//! Containers, in which the provider runs code.
//!
//! A reply names its container. The turn's later requests name it again, because the API rejects a continuation of code
//! without its container. A later turn starts with a new one: containers expire.

use helix_agents_core::json::Json;
use helix_agents_core::message::{AssistantMessage, Message, ReplyPart};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::AnthropicMessages;
use crate::reply_data;
use crate::wire_format::Call;

/// The member of requests and replies with the container.
pub(super) const MEMBER: &str = "container";

/// The part of a reply that stores its container. Unlike a content block, it has no `type`.
#[derive(Debug, Deserialize)]
struct Part {
    container: Container,
}

#[derive(Debug, Deserialize)]
struct Container {
    id: String,
}

/// Returns the part of a reply that contains its container.
pub(super) fn part(container: &RawValue) -> Option<Json> {
    let container: Container = serde_json::from_str(container.get()).ok()?;
    Some(json!({ "container": { "id": container.id } }).into())
}

/// Returns the member of a request that continues a turn with a container. The caller may have set other members of the
/// container.
pub(super) fn settings(call: &Call<'_>) -> Option<Value> {
    let own = call.option::<AnthropicMessages>(MEMBER).cloned();
    let Some(id) = of_turn(call) else { return own };
    match own {
        None => Some(id.into()),
        Some(Value::Object(mut members)) => {
            members.entry("id").or_insert_with(|| id.into());
            Some(Value::Object(members))
        }
        Some(own) => Some(own),
    }
}

/// Returns the last container of the turn. Only the model that started the turn continues its code.
fn of_turn(call: &Call<'_>) -> Option<String> {
    let turn = call.request.messages.iter().rev();
    let mut turn =
        turn.take_while(|message| matches!(***message, Message::Assistant(_) | Message::Tool(_)));
    turn.find_map(|message| match &**message {
        Message::Assistant(reply)
            if !reply_data::is_foreign(message, call.data_owner, Some(call.model)) =>
        {
            id(reply)
        }
        _ => None,
    })
}

/// Returns the container of a reply, which is its last part.
fn id(reply: &AssistantMessage) -> Option<String> {
    match reply.parts().last() {
        Some(ReplyPart::Opaque { data }) => {
            let part: Part = serde_json::from_str(data.text()).ok()?;
            Some(part.container.id)
        }
        _ => None,
    }
}
