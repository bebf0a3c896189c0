//! The parts of a model reply in their order, with the data that their provider needs back.
//!
//! A message keeps its text, its reasoning and its calls once, in terms that all providers share. The layout adds the
//! order of the parts and opaque data, such as signatures of reasoning, and repeats no text.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{AssistantMessage, ToolCall};
use crate::json::Json;

/// The order of a reply's parts, and the opaque data of its provider.
///
/// Providers reject a conversation whose signed parts were changed, reordered or left out, so an adapter sends them
/// back as it received them. The data is meaningless to others: an adapter leaves out data whose
/// [`provider`](Self::provider) is not its own. Some data is bound to a model, and is sent only to that
/// [`model`](Self::model).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReplyLayout {
    /// The reader of the data: an API, such as `anthropic`, or one provider with an API, as in `openai_responses/work`.
    pub provider: Arc<str>,
    /// The model, as the request named it.
    pub model: Arc<str>,
    pub(crate) parts: Vec<LayoutPart>,
}

/// The position of one part. Texts are given by their length, so that the log contains them once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LayoutPart {
    /// The next bytes of the message's reasoning.
    Thinking {
        bytes: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Json>,
    },
    /// The next bytes of the message's text.
    Text {
        bytes: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Json>,
    },
    /// The call at this index of the message.
    Call {
        index: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Json>,
    },
    /// A part that only the provider reads.
    Opaque { data: Json },
}

/// A part of a model reply.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ReplyPart<'a> {
    /// A block of reasoning.
    Thinking {
        /// The disclosed text. May be empty.
        text: &'a str,
        /// The provider's data, such as a signature.
        data: Option<&'a Json>,
    },
    /// A piece of the text.
    Text {
        /// The text. May be empty if only its data matters.
        text: &'a str,
        /// The provider's data.
        data: Option<&'a Json>,
    },
    /// A tool call.
    Call {
        /// The call.
        call: &'a ToolCall,
        /// The provider's data.
        data: Option<&'a Json>,
    },
    /// A part that only the provider reads, such as the result of a tool that the provider ran.
    Opaque {
        /// The part as JSON.
        data: &'a Json,
    },
}

impl AssistantMessage {
    /// Returns the parts in the order in which the model produced them. Without a [layout](Self::layout), these are the
    /// reasoning, the text and the calls.
    ///
    /// # Examples
    ///
    /// ```
    /// use helix_agents_core::message::{AssistantMessage, ReplyPart};
    ///
    /// let mut message = AssistantMessage::default();
    /// message.content = Some("Hello.".to_owned());
    /// let parts: Vec<_> = message.parts().collect();
    /// assert_eq!(parts, [ReplyPart::Text { text: "Hello.", data: None }]);
    /// ```
    pub fn parts(&self) -> impl Iterator<Item = ReplyPart<'_>> {
        let laid_out = self.layout.as_deref().map(|layout| self.laid_out(layout));
        let plain = self.layout.is_none().then(|| self.plain());
        laid_out.into_iter().flatten().chain(plain.into_iter().flatten())
    }

    fn plain(&self) -> impl Iterator<Item = ReplyPart<'_>> {
        let thinking = self.thinking.iter().map(|thinking| &*thinking.content);
        let thinking = thinking.map(|text| ReplyPart::Thinking { text, data: None });
        let text = self.content.iter().map(|text| ReplyPart::Text { text, data: None });
        let calls = self.tool_calls.iter().map(|call| ReplyPart::Call { call, data: None });
        thinking.chain(text).chain(calls)
    }

    fn laid_out<'a>(&'a self, layout: &'a ReplyLayout) -> impl Iterator<Item = ReplyPart<'a>> {
        let mut thinking = self.thinking.as_ref().map_or("", |thinking| &*thinking.content);
        let mut text = self.content.as_deref().unwrap_or_default();
        layout.parts.iter().filter_map(move |part| {
            Some(match part {
                LayoutPart::Thinking { bytes, data } => {
                    ReplyPart::Thinking { text: take(&mut thinking, *bytes)?, data: data.as_ref() }
                }
                LayoutPart::Text { bytes, data } => {
                    ReplyPart::Text { text: take(&mut text, *bytes)?, data: data.as_ref() }
                }
                LayoutPart::Call { index, data } => {
                    ReplyPart::Call { call: self.tool_calls.get(*index)?, data: data.as_ref() }
                }
                LayoutPart::Opaque { data } => ReplyPart::Opaque { data },
            })
        })
    }
}

/// Removes the first bytes of a text and returns them. Returns `None` if the text is shorter, which only a log that
/// another program wrote can cause.
fn take<'a>(text: &mut &'a str, bytes: usize) -> Option<&'a str> {
    let (taken, rest) = text.split_at_checked(bytes)?;
    *text = rest;
    Some(taken)
}
