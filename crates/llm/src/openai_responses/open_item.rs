//! An item of a reply while it arrives: what the sink has received of it.

use helix_agents_core::llm::LlmSink;
use serde_json::Map;

use super::item::Item;

/// An item whose end has not arrived.
#[derive(Debug)]
pub(super) enum OpenItem {
    /// The text of a message, including its refusal.
    Message(String),
    /// The text of reasoning.
    Reasoning(String),
    /// A call, with its position among the calls.
    Call { position: u32, id: String, name: String, arguments: String },
}

impl OpenItem {
    /// Converts the pieces into an item, for a server that does not send the complete item.
    pub(super) fn into_item(self) -> Item {
        let members = Map::default();
        match self {
            Self::Message(text) => Item::Message { text, refusal: String::new(), members },
            Self::Reasoning(text) => Item::Reasoning { summary: vec![text], members },
            Self::Call { id, name, arguments, .. } => Item::Call { id, name, arguments, members },
        }
    }

    /// Passes on the part of a complete text that the sink has not received. Returns `true` if there
    /// is one.
    pub(super) fn deliver_rest(&self, whole: &str, sink: &dyn LlmSink) -> bool {
        let (Self::Message(received) | Self::Reasoning(received)) = self else { return false };
        let Some(rest) = whole.strip_prefix(&**received).filter(|rest| !rest.is_empty()) else {
            return false;
        };
        match self {
            Self::Reasoning(_) => sink.thinking(rest, false),
            _ => sink.text_delta(rest),
        }
        true
    }
}
