//! The wire format of responses. A streamed reply is a sequence of the same documents.
//!
//! Unknown members are skipped, and `null` means absent.

use std::borrow::Cow;

use helix_agents_core::usage::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document<'a> {
    #[serde(borrow, default)]
    pub(super) candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    pub(super) prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(default)]
    pub(super) usage_metadata: Option<WireUsage>,
    #[serde(borrow, default)]
    pub(super) model_version: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) response_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(default)]
    pub(super) index: Option<u32>,
    #[serde(borrow, default)]
    pub(super) content: Option<Content<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Content<'a> {
    #[serde(borrow, default)]
    pub(super) parts: Option<Vec<WirePart<'a>>>,
}

/// The members of a part that the crate reads. A part without text and call is data that only the provider reads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WirePart<'a> {
    #[serde(borrow, default)]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) thought: Option<bool>,
    #[serde(default)]
    pub(super) thought_signature: Option<String>,
    #[serde(default)]
    pub(super) function_call: Option<Map<String, Value>>,
}

/// The parts of a document as JSON. A document is decoded into them only if one of its parts is data.
#[derive(Debug, Deserialize)]
pub(super) struct RawParts<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<RawCandidate<'a>>>,
}

#[derive(Debug, Deserialize)]
struct RawCandidate<'a> {
    #[serde(borrow, default)]
    content: Option<RawContent<'a>>,
}

#[derive(Debug, Deserialize)]
struct RawContent<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<&'a RawValue>>,
}

impl<'a> RawParts<'a> {
    /// Returns a part by the position of its candidate and its own position.
    pub(super) fn get(&self, candidate: usize, part: usize) -> Option<&'a RawValue> {
        let candidate = self.candidates.as_ref()?.get(candidate)?;
        candidate.content.as_ref()?.parts.as_ref()?.get(part).copied()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow, default)]
    pub(super) block_reason: Option<Cow<'a, str>>,
}

/// Token counts. Each document has running totals.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireUsage {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
    #[serde(default)]
    thoughts_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
}

impl WireUsage {
    /// Replaces the counts that are present in a later document.
    pub(super) fn update(&mut self, later: Self) {
        self.prompt_token_count = later.prompt_token_count.or(self.prompt_token_count);
        self.tool_use_prompt_token_count =
            later.tool_use_prompt_token_count.or(self.tool_use_prompt_token_count);
        self.candidates_token_count = later.candidates_token_count.or(self.candidates_token_count);
        self.thoughts_token_count = later.thoughts_token_count.or(self.thoughts_token_count);
        self.cached_content_token_count =
            later.cached_content_token_count.or(self.cached_content_token_count);
    }
}

impl From<WireUsage> for Usage {
    /// The provider counts reasoning beside the output.
    fn from(wire: WireUsage) -> Self {
        let prompt = wire.prompt_token_count.unwrap_or_default();
        let tools = wire.tool_use_prompt_token_count.unwrap_or_default();
        let thoughts = wire.thoughts_token_count.unwrap_or_default();
        let output = wire.candidates_token_count.unwrap_or_default();
        Self::new(prompt.saturating_add(tools), output.saturating_add(thoughts))
            .with_cached_tokens(wire.cached_content_token_count.unwrap_or_default())
            .with_reasoning_tokens(thoughts)
    }
}
