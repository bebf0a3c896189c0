//! The model adapter contract: a single streamed model call.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::budget::Budget;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorRecord, Result};
use crate::id::SessionId;
use crate::json::Json;
use crate::message::{ReplyLayout, SharedMessage};
use crate::schema::Schema;
use crate::stream::ChunkKind;
use crate::tool::ToolSet;
use crate::trace::TraceParent;
use crate::usage::Usage;
use reply::{ParsedToolCall, StepResult};

mod caching;
pub(crate) mod reply;
mod reply_builder;
mod retry_policy;
mod thinking;

pub use caching::Caching;
pub use reply_builder::ReplyBuilder;
pub use retry_policy::RetryPolicy;
pub use thinking::{Effort, ThinkingAmount, ThinkingConfig, ThinkingDisplay};

/// The settings of an agent's model calls.
///
/// Settings that the API or a known model does not support are rejected before the run starts. Hints are dropped
/// instead: `strict_output`, `caching` and the display of `thinking`.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct LlmConfig {
    /// The model as `provider:model`, or a model name of the default provider.
    pub model: String,
    /// The models that are called instead, in this order, if the previous one cannot be used and no output has arrived:
    /// its provider is unavailable or overloaded, refuses the key or does not serve the model, or the model does not
    /// accept an attached file. Each must support the other settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback_models: Vec<String>,
    /// The maximum number of tokens in a reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// The sampling temperature, from 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The nucleus sampling threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Samples from the `k` most likely tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// The penalty on tokens that have occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// The penalty on tokens by their frequency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Texts that end a reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// The seed for reproducible sampling, if the provider supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The amount of reasoning, and its display. Default: the provider decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<ThinkingConfig>,
    /// Whether the provider should cache the beginning of requests. A hint.
    #[serde(skip_serializing_if = "Caching::is_default")]
    pub caching: Caching,
    /// The number of times that a call that fails before its first chunk is retried. Default: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u32>,
    /// Whether the provider should constrain `__finish__` to its schema, if it can. A hint.
    pub strict_output: bool,
    /// Whether to request the output through the provider's JSON-schema response format instead of
    /// `__finish__`.
    pub native_output: bool,
    /// Additional HTTP headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Request options by provider name, merged into the request unchanged.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub provider_options: BTreeMap<String, serde_json::Map<String, Value>>,
}

impl LlmConfig {
    /// Creates the settings for this model, with the provider's defaults. All fields can be
    /// changed.
    ///
    /// ```
    /// use helix_agents_core::llm::LlmConfig;
    ///
    /// let mut config = LlmConfig::new("openai:gpt-5");
    /// config.max_output_tokens = Some(2_000);
    /// ```
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }
}

impl fmt::Debug for LlmConfig {
    /// Omits the values of headers and provider options, because they may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LlmConfig")
            .field("model", &self.model)
            .field("fallback_models", &self.fallback_models)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("temperature", &self.temperature)
            .field("thinking", &self.thinking)
            .field("caching", &self.caching)
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

/// The constraint on the model's tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice<'a> {
    /// The model chooses.
    #[default]
    Auto,
    /// The model must call this tool. Used after a correction, and in the last step that the limits
    /// of the turn allow.
    Tool(&'a str),
}

/// The parameters of a model call. All fields are borrowed, so that nothing is copied per step.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LlmRequest<'a> {
    /// The resolved system prompt, sent before `messages`.
    pub prompt: &'a SharedMessage,
    /// The transcript, oldest message first.
    pub messages: &'a [SharedMessage],
    /// The tools that the model sees.
    pub tools: &'a Arc<ToolSet>,
    /// The tool that the model must call, if any.
    pub tool_choice: ToolChoice<'a>,
    /// The schema of native structured output, if requested.
    pub output_schema: Option<&'a Schema>,
    /// The settings of the call.
    pub config: &'a LlmConfig,
    /// The maximum number of retries before the first output: [`LlmConfig::max_retries`], or its
    /// default. Only the adapter makes these retries, so that they do not multiply.
    pub max_retries: u32,
    /// Cancels the call: the connection is closed and the call returns
    /// [`Cancelled`](crate::error::ErrorCode::Cancelled).
    pub cancel: &'a CancellationToken,
    /// Cancelled when the run is asked to interrupt. The run stops at its next step boundary. Long
    /// calls should return early, with a [`Pause`](crate::step::StopReason::Pause) if they can
    /// continue. Adapters of ordinary models ignore it.
    pub interrupt: &'a CancellationToken,
    /// The total limits on the session's usage, without deducting past usage.
    pub budget: Budget,
    /// The time at which the session was created, by the store's clock. With the session id it
    /// identifies a session for ever: a deleted session and its successor may have the same id.
    pub created_at: Timestamp,
    /// The agent's name.
    pub agent: &'a str,
    /// The session id, as a cache key and routing hint.
    pub session: &'a SessionId,
    /// The trace of the turn and the span of this call. Adapters of model providers do not send it.
    pub trace: Option<TraceParent>,
    /// The usage that the log has of the turn so far, for an agent with its own adapter.
    pub turn_usage: Usage,
}

impl<'a> LlmRequest<'a> {
    /// Creates a request without tools and with an empty agent name. `max_retries` is that of the
    /// configuration, or its default.
    #[must_use]
    pub fn new(
        session: &'a SessionId,
        config: &'a LlmConfig,
        prompt: &'a SharedMessage,
        messages: &'a [SharedMessage],
        cancel: &'a CancellationToken,
    ) -> Self {
        static NO_TOOLS: LazyLock<Arc<ToolSet>> = LazyLock::new(Arc::default);
        static NO_INTERRUPT: LazyLock<CancellationToken> = LazyLock::new(CancellationToken::new);
        Self {
            prompt,
            messages,
            tools: &NO_TOOLS,
            tool_choice: ToolChoice::Auto,
            output_schema: None,
            config,
            max_retries: config.max_retries.unwrap_or(DEFAULT_MAX_RETRIES),
            cancel,
            interrupt: &NO_INTERRUPT,
            budget: Budget::new(),
            created_at: Timestamp::default(),
            agent: "",
            session,
            trace: None,
            turn_usage: Usage::default(),
        }
    }

    /// Replaces the settings of the call.
    #[must_use]
    pub fn with_config<'b>(self, config: &'b LlmConfig) -> LlmRequest<'b>
    where
        'a: 'b,
    {
        LlmRequest { config, ..self }
    }

    /// Sets the agent's name.
    #[must_use]
    pub fn agent(mut self, name: &'a str) -> Self {
        self.agent = name;
        self
    }

    /// Sets the token that is cancelled when the run is asked to interrupt.
    #[must_use]
    pub fn interrupt(mut self, interrupt: &'a CancellationToken) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// Sets the limits on the session's usage.
    #[must_use]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Sets the time at which the session was created.
    #[must_use]
    pub fn created_at(mut self, created_at: Timestamp) -> Self {
        self.created_at = created_at;
        self
    }

    /// Sets the trace of the turn and the span of this call.
    #[must_use]
    pub fn trace(mut self, trace: TraceParent) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Sets the usage that the log has of the turn so far.
    #[must_use]
    pub fn turn_usage(mut self, usage: Usage) -> Self {
        self.turn_usage = usage;
        self
    }

    /// Sets the tools that the model sees.
    #[must_use]
    pub fn tools(mut self, tools: &'a Arc<ToolSet>) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the tool that the model must call. Default: the model chooses.
    #[must_use]
    pub fn tool_choice(mut self, choice: ToolChoice<'a>) -> Self {
        self.tool_choice = choice;
        self
    }

    /// Sets the schema of native structured output, if requested.
    #[must_use]
    pub fn output_schema(mut self, schema: Option<&'a Schema>) -> Self {
        self.output_schema = schema;
        self
    }

    /// Sets the maximum number of retries before the first output.
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = retries;
        self
    }
}

/// The receiver of a model call's output while the call runs. Its methods are cheap and never
/// block.
pub trait LlmSink: Send + Sync {
    /// Receives the next piece of text.
    fn text_delta(&self, delta: &str);

    /// Receives the next piece of reasoning, or all of it if `complete`.
    fn thinking(&self, content: &str, complete: bool);

    /// Receives the start of a tool call; `index` is its position in the reply.
    fn tool_call_start(&self, index: u32, name: &str);

    /// Receives the next piece of the call's arguments.
    fn tool_call_delta(&self, index: u32, delta: &str);

    /// Receives a complete call.
    fn tool_call(&self, call: &ParsedToolCall);

    /// Receives the error of a call that failed after its first output.
    fn error(&self, error: &Error);

    /// Receives custom output of a wrapping adapter, such as a plan. It is shown to users as a
    /// `custom` chunk and is not part of the reply.
    fn custom(&self, _name: &str, _data: &Json) {}

    /// Receives a chunk of a tool that the provider executed. It is shown in the session's stream and
    /// is not part of the reply.
    fn chunk(&self, _chunk: ChunkKind) {}
}

/// A sink that discards everything.
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

/// The output of a model call, with its usage and the provider's data.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LlmResponse {
    /// The output.
    pub result: StepResult,
    /// The order of the output's parts and the data that the provider needs back, if the output alone does not determine
    /// them. A [`ReplyBuilder`] creates both.
    pub layout: Option<ReplyLayout>,
    /// The token usage, as reported by the provider.
    pub usage: Usage,
    /// The attempts that failed before, oldest first.
    pub failed_attempts: Vec<FailedAttempt>,
    /// The model that replied, as named by the provider.
    pub model: Option<Arc<str>>,
    /// The model that was requested.
    pub requested: Option<Arc<str>>,
    /// The provider, as OpenTelemetry names it: `openai`, `anthropic`, `aws.bedrock`.
    pub provider: Option<Arc<str>>,
    /// The provider's id of the reply.
    pub response_id: Option<String>,
    /// The stop reason in the provider's terms.
    pub raw_stop_reason: Option<String>,
}

impl LlmResponse {
    /// Creates a response of an unnamed model. All fields can be changed.
    #[must_use]
    pub const fn new(result: StepResult, usage: Usage) -> Self {
        Self {
            result,
            layout: None,
            usage,
            failed_attempts: Vec::new(),
            model: None,
            requested: None,
            provider: None,
            response_id: None,
            raw_stop_reason: None,
        }
    }
}

/// A failed attempt at a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// The code of the error.
    pub code: String,
    /// The tokens that the provider charges for the attempt, as far as it reported them.
    #[serde(default, skip_serializing_if = "Usage::is_zero")]
    pub usage: Usage,
}

impl FailedAttempt {
    /// Creates a failed attempt.
    #[must_use]
    pub fn new(error: &Error, usage: Usage) -> Self {
        Self { code: error.code().as_str().to_owned(), usage }
    }

    /// Creates the failed attempt of a response with this error.
    #[must_use]
    pub fn of_response(error: &ErrorRecord, usage: Usage) -> Self {
        Self { code: error.code.clone().into_owned(), usage }
    }
}

/// A model behind a provider's interface.
///
/// # Contract
///
/// - A failure of the provider is a [`StepResult::Error`], not an `Err`. `should_stop` is `true` if
///   a retry is useless or the retries are exhausted, and `false` if the reply broke off after its
///   first output and a retry may succeed.
/// - The adapter retries only before the first output, at most `max_retries` times, and waits at
///   least as long as the provider asked for.
/// - The concatenated output that the sink received equals the content of the result.
/// - Wire types, keys and addresses are private to the adapter.
///
/// # Cancel safety
///
/// Dropping the future closes the connection; the provider may charge for the call.
///
/// # Examples
///
/// A model that answers with the number of messages that it has read:
///
/// ```
/// use async_trait::async_trait;
/// use helix_agents_core::error::Result;
/// use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
/// use helix_agents_core::step::{StepResult, StopReason};
/// use helix_agents_core::usage::Usage;
///
/// #[derive(Debug)]
/// struct Counter;
///
/// #[async_trait]
/// impl LlmAdapter for Counter {
///     async fn generate_step(
///         &self,
///         request: LlmRequest<'_>,
///         sink: &dyn LlmSink,
///     ) -> Result<LlmResponse> {
///         let content = format!("{} messages", request.messages.len());
///         sink.text_delta(&content);
///         let result = StepResult::Text {
///             content,
///             thinking: None,
///             should_stop: true,
///             stop_reason: Some(StopReason::EndTurn),
///         };
///         Ok(LlmResponse::new(result, Usage::default()))
///     }
///
///     fn check(&self, _: &LlmConfig) -> Result<()> {
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait LlmAdapter: fmt::Debug + Send + Sync + 'static {
    /// Makes one model call.
    ///
    /// # Errors
    /// Returns [`Cancelled`](crate::error::ErrorCode::Cancelled),
    /// [`ModelUnknown`](crate::error::ErrorCode::ModelUnknown), or
    /// [`ConfigInvalid`](crate::error::ErrorCode::ConfigInvalid).
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse>;

    /// Checks that `config` is supported, before a run starts with it.
    ///
    /// # Errors
    /// Returns [`ModelUnknown`](crate::error::ErrorCode::ModelUnknown) or
    /// [`ConfigInvalid`](crate::error::ErrorCode::ConfigInvalid).
    fn check(&self, config: &LlmConfig) -> Result<()>;

    /// Stops the work of an aborted session that continues without a connection. Only the agent's
    /// [own](crate::agent::AgentBuilder::adapter) adapter is called, at least once unless the process
    /// dies. No model call of the session may be in progress then. Implementations must be
    /// idempotent.
    ///
    /// # Errors
    /// Returns an error if the work could not be stopped. It is only logged.
    async fn abort(
        &self,
        _session: &SessionId,
        _created_at: Timestamp,
        _reason: Option<&str>,
    ) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
