//! The data of a reply that only the provider that made it can read.
//!
//! Some data is bound to an account: another provider with the same API cannot decrypt or verify it, or rejects it. The
//! layout of such a reply names the API and the provider.

use helix_agents_core::message::Message;

/// Returns the name of the data in a layout.
pub(crate) fn name(api: &str, provider: &str) -> String {
    format!("{api}/{provider}")
}

/// Returns `true` if the message contains data that must not be sent to the provider.
pub(crate) fn is_foreign(message: &Message, api: &str, provider: &str) -> bool {
    let Message::Assistant(reply) = message else { return false };
    reply.layout.as_ref().is_some_and(|layout| {
        let of_api = layout.provider.strip_prefix(api);
        of_api.and_then(|rest| rest.strip_prefix('/')) != Some(provider)
    })
}
