//! The wire format of responses: the events of a stream, and complete responses.
//!
//! Unknown members are skipped, and `null` means absent.

use std::borrow::Cow;

use helix_agents_core::usage::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A frame, as the decoder writes it.
#[derive(Debug, Deserialize)]
pub(super) struct Frame<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) event: Option<Event<'a>>,
    #[serde(borrow, default)]
    pub(super) exception: Option<Exception<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Exception<'a> {
    #[serde(borrow, default)]
    pub(super) message: Cow<'a, str>,
}

/// An event of any kind.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'a> {
    #[serde(default)]
    pub(super) content_block_index: u64,
    #[serde(borrow, default)]
    pub(super) start: Option<Start<'a>>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start<'a> {
    #[serde(borrow, default)]
    pub(super) tool_use: Option<ToolUse<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolUse<'a> {
    #[serde(borrow, default)]
    pub(super) tool_use_id: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) name: Cow<'a, str>,
    /// The arguments of a complete response.
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) tool_use: Option<Input<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<Reasoning<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Input<'a> {
    #[serde(borrow, default)]
    pub(super) input: Cow<'a, str>,
}

/// A piece of reasoning in a stream.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reasoning<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) redacted_content: Option<Cow<'a, str>>,
}

/// A complete response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) output: Output<'a>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Output<'a> {
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Vec<&'a RawValue>,
}

/// A content block of a complete response.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Block<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) tool_use: Option<ToolUse<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<ReasoningBlock<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReasoningBlock<'a> {
    #[serde(borrow, default)]
    pub(super) reasoning_text: Option<Reasoning<'a>>,
    #[serde(borrow, default)]
    pub(super) redacted_content: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireUsage {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    cache_read_input_tokens: u64,
    #[serde(default)]
    cache_write_input_tokens: u64,
}

impl From<WireUsage> for Usage {
    /// The provider counts cached and written tokens beside the input.
    fn from(wire: WireUsage) -> Self {
        let (read, written) = (wire.cache_read_input_tokens, wire.cache_write_input_tokens);
        let input = wire.input_tokens.saturating_add(read).saturating_add(written);
        Self::new(input, wire.output_tokens)
            .with_cached_tokens(read)
            .with_cache_write_tokens(written)
    }
}
