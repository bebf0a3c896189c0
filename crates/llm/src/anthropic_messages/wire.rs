//! The wire format of responses: the events of a stream, and the message of a complete response.
//!
//! Unknown members are skipped, and `null` means absent. The members of an event may arrive in any order, so one
//! structure has the members of all kinds.

use std::borrow::Cow;

use helix_agents_core::usage::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(default)]
    pub(super) index: u64,
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, rename = "type", default)]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) content: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) container: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// The change of a block, or of the message as a whole.
#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) signature: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) partial_json: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) citation: Option<&'a RawValue>,
    /// The summary of a compaction.
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) container: Option<&'a RawValue>,
}

/// Token counts. Counts in several events are running totals, and later events may leave some out.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(super) struct WireUsage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: Option<u64>,
}

impl WireUsage {
    /// Replaces the counts that are present in a later event.
    pub(super) fn update(&mut self, later: Self) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens =
            later.cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens =
            later.cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }
}

impl From<WireUsage> for Usage {
    /// The provider counts cached and written tokens beside the input.
    fn from(wire: WireUsage) -> Self {
        let read = wire.cache_read_input_tokens.unwrap_or_default();
        let written = wire.cache_creation_input_tokens.unwrap_or_default();
        let input = wire.input_tokens.unwrap_or_default();
        let input = input.saturating_add(read).saturating_add(written);
        let details = wire.output_tokens_details;
        let thinking = details.and_then(|details| details.thinking_tokens).unwrap_or_default();
        Self::new(input, wire.output_tokens.unwrap_or_default())
            .with_cached_tokens(read)
            .with_cache_write_tokens(written)
            .with_reasoning_tokens(thinking)
    }
}
