//! The wire format of responses: a streamed chunk, or a complete response, which differs only in
//! that it has `message` instead of `delta`.
//!
//! Text is borrowed from the read buffer unless it contains escapes. Unknown members are skipped,
//! and `null` means absent, because servers differ in both.
//!
//! Members that few chunks have are boxed, so that a chunk of text is small: parsing moves it
//! several times.

use std::borrow::Cow;
use std::fmt;

use helix_agents_core::usage::Usage;
use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

#[derive(Debug, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) model: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub(super) usage: Option<Box<WireUsage>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// `error` for errors that are not wrapped in an object.
    #[serde(borrow, default)]
    pub(super) object: Option<Text<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default, alias = "message")]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<CallDelta<'a>>>,
    #[serde(borrow, default)]
    pub(super) function_call: Option<Box<FunctionDelta<'a>>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) function: Option<FunctionDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<ArgumentsText<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Debug, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let details = wire.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens).unwrap_or_default();
        let written = details.and_then(|details| details.cache_write_tokens).unwrap_or_default();
        let reasoning = wire.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        let reasoning = reasoning.unwrap_or_default();
        let input = wire.prompt_tokens.unwrap_or_default();
        let mut output = wire.completion_tokens.unwrap_or_default();
        // xAI reports reasoning beside the completion, not as a part of it.
        let with_reasoning = output.saturating_add(reasoning);
        if wire.total_tokens == Some(input.saturating_add(with_reasoning)) {
            output = with_reasoning;
        }
        Self::new(input, output)
            .with_cached_tokens(cached)
            .with_cache_write_tokens(written)
            .with_reasoning_tokens(reasoning)
    }
}

/// A text, or a list of parts whose texts are concatenated.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        struct Part<'a> {
            #[serde(borrow, default)]
            text: Option<Text<'a>>,
        }
        let mut all = String::new();
        while let Some(part) = parts.next_element::<Part<'de>>()? {
            all.push_str(&part.text.unwrap_or_default().0);
        }
        Ok(Cow::Owned(all))
    }

    // Some servers send reasoning as an object, which contains no text to show.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Cow::Borrowed(""))
    }
}

/// A piece of the arguments' JSON text. Some servers send JSON instead of a string.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ArgumentsText<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for ArgumentsText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&'de RawValue>::deserialize(deserializer)?.get();
        if !raw.starts_with('"') {
            return Ok(Self(Cow::Borrowed(raw)));
        }
        let text: Text<'de> = serde_json::from_str(raw).map_err(de::Error::custom)?;
        Ok(Self(text.0))
    }
}
