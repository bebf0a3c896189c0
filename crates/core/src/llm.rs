//! The contract of a model: one call, streamed while it runs.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::json::Json;
use crate::message::SharedMessage;
use crate::schema::Schema;
use crate::step::{ParsedToolCall, StepResult};
use crate::tool::ToolSet;
use crate::usage::Usage;

/// Settings of the model calls of an agent.
///
/// What a provider does not know is an error when it refuses the request, never dropped silently;
/// `strict_output`, a hint, is the exception.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LlmConfig {
    /// `provider:model`, or a model of the only provider.
    pub model: String,
    /// The most tokens of a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Sampling from the k likeliest tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Penalty on tokens that occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Penalty on tokens by how often they occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Texts that end a reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// For repeatable sampling, where the provider has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How often a failed call is tried again before its first chunk was delivered. Default 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Whether `__finish__` is constrained to its schema by the provider, where it can. A hint.
    pub strict_output: bool,
    /// Whether the output is asked for by the provider's own JSON-schema response format instead
    /// of `__finish__`.
    pub native_output: bool,
    /// Additional HTTP headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Options by provider name, put into the request as they are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub provider_options: BTreeMap<String, serde_json::Map<String, Value>>,
}

impl fmt::Debug for LlmConfig {
    /// Without the values of headers and provider options: they may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmConfig")
            .field("model", &self.model)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("temperature", &self.temperature)
            .field("max_retries", &self.max_retries)
            .field("strict_output", &self.strict_output)
            .field("native_output", &self.native_output)
            .field("headers", &self.headers.keys())
            .field("provider_options", &self.provider_options.keys())
            .finish_non_exhaustive()
    }
}

/// The default of [`LlmConfig::max_retries`].
pub const DEFAULT_MAX_RETRIES: u32 = 3;

/// Which tool the model is to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice<'a> {
    /// Its own choice.
    #[default]
    Auto,
    /// This one: used when the model was told to call it and did not.
    Tool(&'a str),
}

/// Everything that a model call needs. It borrows: nothing is copied per step.
#[derive(Debug, Clone)]
pub struct LlmRequest<'a> {
    /// The system prompt, resolved; put in front of `messages`.
    pub prompt: &'a SharedMessage,
    /// The transcript, oldest first.
    pub messages: &'a [SharedMessage],
    /// The tools that the model sees.
    pub tools: &'a Arc<ToolSet>,
    /// Which of them to call.
    pub tool_choice: ToolChoice<'a>,
    /// The schema of a native structured output, if one is asked for.
    pub output_schema: Option<&'a Schema>,
    /// Settings.
    pub config: &'a LlmConfig,
    /// How often to try again; the runtime's decision, so that attempts never multiply.
    pub max_retries: u32,
    /// Cancelling it closes the connection and ends the call with
    /// [`Cancelled`](crate::error::ErrorCode::Cancelled).
    pub cancel: &'a CancellationToken,
    /// The agent's name.
    pub agent: &'a str,
    /// The session: cache key and routing hint.
    pub session: &'a SessionId,
}

/// Where a model call delivers what it has while it runs. Calls are cheap and never block.
pub trait LlmSink: Send + Sync {
    /// The next piece of text.
    fn text_delta(&self, delta: &str);

    /// The next piece of reasoning, or all of it if `complete`.
    fn thinking(&self, content: &str, complete: bool);

    /// The model began a call, the `index`-th of the reply.
    fn tool_call_start(&self, index: u32, name: &str);

    /// The next piece of that call's arguments.
    fn tool_call_delta(&self, index: u32, delta: &str);

    /// A call is complete.
    fn tool_call(&self, call: &ParsedToolCall);

    /// The call failed after something was delivered.
    fn error(&self, error: &Error);

    /// What an adapter around another one has to show of its own, such as a plan: shown to people
    /// as a `custom` chunk, and no part of the reply.
    fn custom(&self, _name: &str, _data: &Json) {}
}

/// A sink for calls that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoSink;

impl LlmSink for NoSink {
    fn text_delta(&self, _: &str) {}
    fn thinking(&self, _: &str, _: bool) {}
    fn tool_call_start(&self, _: u32, _: &str) {}
    fn tool_call_delta(&self, _: u32, _: &str) {}
    fn tool_call(&self, _: &ParsedToolCall) {}
    fn error(&self, _: &Error) {}
}

/// What a model call brought.
#[derive(Debug, Clone, PartialEq)]
pub struct LlmResponse {
    /// The step's result.
    pub result: StepResult,
    /// Tokens, as far as the provider says.
    pub usage: Usage,
    /// The model that answered, as the provider names it.
    pub model: Option<Arc<str>>,
    /// The provider's own word for why it stopped.
    pub raw_stop_reason: Option<String>,
}

/// A model behind a provider's interface.
///
/// # Contract
///
/// - A failure of the provider is a [`StepResult::Error`], not an `Err`: with `should_stop` if
///   asking again is of no use or was tried often enough, without it if the reply broke off after
///   something was delivered.
/// - It retries only before anything was delivered to the sink, at most `max_retries` times, and
///   waits as long as the provider asked.
/// - What was delivered to the sink, put together, is what the result holds.
/// - Wire types, keys and addresses stay inside.
///
/// # Cancel safety
///
/// Dropping the future closes the connection; the provider may have been paid.
#[async_trait]
pub trait LlmAdapter: fmt::Debug + Send + Sync + 'static {
    /// Makes one model call.
    ///
    /// # Errors
    /// [`Cancelled`](crate::error::ErrorCode::Cancelled),
    /// [`ModelUnknown`](crate::error::ErrorCode::ModelUnknown), or
    /// [`ConfigInvalid`](crate::error::ErrorCode::ConfigInvalid).
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse>;

    /// Checks that `config` can be served, before a run starts with it.
    ///
    /// # Errors
    /// [`ModelUnknown`](crate::error::ErrorCode::ModelUnknown) or
    /// [`ConfigInvalid`](crate::error::ErrorCode::ConfigInvalid).
    fn check(&self, config: &LlmConfig) -> Result<()>;
}

/// When and how long to wait before a failed effect is tried again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// How often to try again at most.
    pub max_retries: u32,
    /// The wait before the first retry; it doubles for each further one.
    pub base: Duration,
    /// The longest wait. A provider that asks for more is not tried again.
    pub max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: DEFAULT_MAX_RETRIES,
            base: Duration::from_millis(500),
            max: Duration::from_secs(60),
        }
    }
}

impl RetryPolicy {
    /// How long to wait before retry number `retry` (from 0), or `None` to give up. `jitter` is a
    /// random number; up to half of the wait is taken off by it, never from a wait that was asked
    /// for.
    #[must_use]
    pub fn wait(&self, retry: u32, error: &Error, jitter: u64) -> Option<Duration> {
        if retry >= self.max_retries || !error.is_retryable() {
            return None;
        }
        if let Some(asked) = error.retry_after() {
            return (asked <= self.max).then_some(asked);
        }
        self.backoff(retry, jitter)
    }

    /// How long to wait before retry number `retry` (from 0) of something that is known to be
    /// passing, or `None` to give up.
    #[must_use]
    pub fn backoff(&self, retry: u32, jitter: u64) -> Option<Duration> {
        if retry >= self.max_retries {
            return None;
        }
        let full = self.base.saturating_mul(1 << retry.min(16)).min(self.max);
        let half = u64::try_from(full.as_millis() / 2).unwrap_or(u64::MAX);
        Some(full.saturating_sub(Duration::from_millis(jitter % half.saturating_add(1))))
    }
}

#[cfg(test)]
mod tests;
