//! Reply data that only one provider can read.
//!
//! Some data is bound to an account: other providers with the same API cannot decrypt or verify it. The layout of such
//! a reply names both the API and the provider.

use std::sync::Arc;

use helix_agents_core::message::{Message, SharedMessage};

use crate::wire_format::Call;

/// Returns the text that names the API and the provider in the layout of a reply. Each server creates it once. The
/// replies of its process share it, so most comparisons need only its address.
pub(crate) fn data_owner(api: &str, provider: &str) -> Arc<str> {
    format!("{api}/{provider}").into()
}

/// Returns `true` if the message contains data that must not be sent to the provider, or to the model if the data is bound
/// to one.
pub(crate) fn is_foreign(message: &Message, data_owner: &Arc<str>, bound_to: Option<&str>) -> bool {
    let Message::Assistant(reply) = message else { return false };
    reply.layout.as_ref().is_some_and(|layout| {
        let is_own = Arc::ptr_eq(&layout.provider, data_owner) || layout.provider == *data_owner;
        !is_own || bound_to.is_some_and(|model| *layout.model != *model)
    })
}

/// Returns the transcript without paused replies of another model at its end. Only the model that made a paused reply
/// can continue it, and many models reject a request whose last message is any other reply.
pub(crate) fn messages<'a>(call: &Call<'a>) -> &'a [SharedMessage] {
    let messages = call.request.messages;
    let is_foreign_pause = |message: &SharedMessage| {
        // A reply with calls is not last: their results follow it.
        matches!(&**message, Message::Assistant(reply) if reply.tool_calls.is_empty())
            && is_foreign(message, call.data_owner, Some(call.model))
    };
    let end =
        messages.iter().rposition(|message| !is_foreign_pause(message)).map_or(0, |last| last + 1);
    messages.get(..end).unwrap_or(messages)
}
