//! Models that answer from a script by position in the history, so the script works across replay, takeover
//! and restart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, ErrorRecord, Result};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{
    FailedAttempt, LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink, ToolChoice,
};
use helix_agents_core::message::{Arguments, Message, ReplyLayout, SharedMessage, Thinking};
use helix_agents_core::step::{ParsedToolCall, StepResult, StopReason};
use helix_agents_core::tool::FINISH_TOOL;
use helix_agents_core::usage::Usage;
use serde_json::Value;

use crate::gate::Gate;
use crate::part::{Part, PartKind, assemble, parsed_call};

/// The name under which the layouts of scripted replies state their provider.
const PROVIDER: &str = "scripted";

/// One reply of a script.
///
/// # Examples
///
/// ```
/// use helix_agents_core::error::ErrorCode;
/// use helix_agents_test::{Reply, ScriptedLlm};
/// use serde_json::json;
/// # use helix_agents_core::agent::Agent;
/// # use helix_agents_core::executor::AgentExecutorExt as _;
/// # use helix_agents_core::tool::{NoInput, Tool, ToolContext};
/// # use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
/// # use helix_agents_store_memory::MemoryStore;
///
/// # #[tokio::main]
/// # async fn main() -> helix_agents_core::error::Result<()> {
/// # let tool = Tool::function("dice", "Roll a die.", |_: NoInput, _: ToolContext| async { Ok(4) });
/// # let agent = Agent::builder("gambler").system_prompt("Roll the die.").tool(tool).build()?;
/// let model = ScriptedLlm::new([
///     Reply::tool_call("dice", json!({})).with_text("I roll it."),
///     Reply::breaks_off(ErrorCode::ProviderStreamCut, "It is"),
///     Reply::text("It is a 4."),
/// ]);
/// # let runtime =
/// #     LocalRuntime::builder().store(MemoryStore::new()).llm(model.clone()).build()?;
/// assert_eq!(runtime.run(&agent, "Go!").await?, "It is a 4.");
/// assert_eq!(model.calls(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Reply {
    kind: Kind,
    thinking: Option<String>,
    custom: Option<(String, Json)>,
    stop_reason: Option<StopReason>,
    usage: Usage,
    failed_attempts: Vec<FailedAttempt>,
    gate: Option<Gate>,
}

#[derive(Debug, Clone)]
enum Kind {
    Text { content: String, should_stop: bool },
    Calls { content: Option<String>, calls: Vec<(String, Arguments)> },
    Parts(Vec<Part>),
    Output(Json),
    Fails { code: ErrorCode, delivered: Option<String> },
}

impl Reply {
    fn new(kind: Kind, stop_reason: StopReason) -> Self {
        let usage = Usage::new(10, 5);
        Self {
            kind,
            thinking: None,
            custom: None,
            stop_reason: Some(stop_reason),
            usage,
            failed_attempts: Vec::new(),
            gate: None,
        }
    }

    /// Creates a text that ends the turn.
    pub fn text(content: impl Into<String>) -> Self {
        Self::new(Kind::Text { content: content.into(), should_stop: true }, StopReason::EndTurn)
    }

    /// Creates a text after which the model continues.
    pub fn more_text(content: impl Into<String>) -> Self {
        Self::new(Kind::Text { content: content.into(), should_stop: false }, StopReason::EndTurn)
    }

    /// Creates a text that its provider paused. The next model call continues it.
    pub fn paused(content: impl Into<String>) -> Self {
        Self::new(Kind::Text { content: content.into(), should_stop: false }, StopReason::Pause)
    }

    /// Creates a reply with one tool call.
    #[must_use]
    pub fn tool_call(name: &str, arguments: Value) -> Self {
        Self::calls([(name, arguments)])
    }

    /// Creates a reply with several tool calls.
    pub fn calls<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let calls =
            calls.into_iter().map(|(name, input)| (name.to_owned(), input.into())).collect();
        Self::new(Kind::Calls { content: None, calls }, StopReason::ToolUse)
    }

    /// Creates a reply with one tool call whose arguments are this text, JSON or not.
    #[must_use]
    pub fn raw_call(name: &str, arguments: &str) -> Self {
        let calls = vec![(name.to_owned(), Arguments::parse(arguments))];
        Self::new(Kind::Calls { content: None, calls }, StopReason::ToolUse)
    }

    /// Creates a reply of these parts, in this order. The message keeps the order and the data of the parts in its
    /// [layout](helix_agents_core::message::AssistantMessage::layout), under the provider `scripted`. A reply with tool
    /// calls stops for the tools, any other ends the turn.
    ///
    /// # Examples
    ///
    /// ```
    /// use helix_agents_test::{Part, Reply};
    /// use serde_json::json;
    ///
    /// let reply = Reply::of_parts([
    ///     Part::thinking("I need a die.").with_data(json!({"signature": "EqQB"})),
    ///     Part::text("I roll it."),
    ///     Part::call("dice", json!({})),
    /// ]);
    /// # drop(reply);
    /// ```
    pub fn of_parts(parts: impl IntoIterator<Item = Part>) -> Self {
        let parts: Vec<_> = parts.into_iter().collect();
        let has_calls = parts.iter().any(|part| matches!(part.kind, PartKind::Call { .. }));
        let stop_reason = if has_calls { StopReason::ToolUse } else { StopReason::EndTurn };
        Self::new(Kind::Parts(parts), stop_reason)
    }

    /// Creates a call of `__finish__` with this output.
    #[must_use]
    pub fn finish(output: Value) -> Self {
        Self::tool_call(FINISH_TOOL, output)
    }

    /// Creates a native structured output.
    #[must_use]
    pub fn output(output: Value) -> Self {
        Self::new(Kind::Output(output.into()), StopReason::EndTurn)
    }

    /// Creates a failure before anything was delivered, after which a retry is of no use.
    #[must_use]
    pub fn fails(code: ErrorCode) -> Self {
        Self::new(Kind::Fails { code, delivered: None }, StopReason::Error)
    }

    /// Creates a failure after this text was delivered.
    #[must_use]
    pub fn breaks_off(code: ErrorCode, delivered: &str) -> Self {
        let kind = Kind::Fails { code, delivered: Some(delivered.to_owned()) };
        Self::new(kind, StopReason::Error)
    }

    /// Adds text to the tool calls.
    #[must_use]
    pub fn with_text(mut self, text: &str) -> Self {
        if let Kind::Calls { content, .. } = &mut self.kind {
            *content = Some(text.to_owned());
        }
        self
    }

    /// Adds disclosed reasoning.
    #[must_use]
    pub fn with_thinking(mut self, thinking: &str) -> Self {
        match &mut self.kind {
            Kind::Parts(parts) => parts.insert(0, Part::thinking(thinking)),
            _ => self.thinking = Some(thinking.to_owned()),
        }
        self
    }

    /// Adds a custom chunk, which is not part of the reply.
    #[must_use]
    pub fn with_custom(mut self, name: &str, data: Value) -> Self {
        self.custom = Some((name.to_owned(), data.into()));
        self
    }

    /// Sets another stop reason.
    #[must_use]
    pub fn with_stop_reason(mut self, reason: StopReason) -> Self {
        self.stop_reason = Some(reason);
        self
    }

    /// Sets token counts other than 10 in and 5 out.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Adds an attempt that failed before the reply, with the tokens that its provider charges for it.
    #[must_use]
    pub fn with_failed_attempt(mut self, code: ErrorCode, usage: Usage) -> Self {
        let error = Error::new(code, "as scripted");
        self.failed_attempts.push(FailedAttempt::new(&error, usage));
        self
    }

    /// Waits at the gate before the reply is given.
    #[must_use]
    pub fn at_gate(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Returns `true` if the reply leaves a message in the history. Positions count these messages.
    fn counts(&self) -> bool {
        matches!(self.kind, Kind::Text { .. } | Kind::Calls { .. } | Kind::Parts(_))
    }

    /// Returns the layout of a reply of parts, if the order of the parts or their data needs one.
    fn layout(&self, answers: usize, model: &str) -> Option<ReplyLayout> {
        match &self.kind {
            Kind::Parts(parts) => assemble(parts, answers).layout(PROVIDER, model),
            _ => None,
        }
    }
}

/// A request as the script received it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SeenRequest {
    /// The system prompt of the request.
    pub prompt: String,
    /// The transcript of the request.
    pub messages: Vec<SharedMessage>,
    /// The names of the tools.
    pub tools: Vec<String>,
    /// The tool that the model had to call.
    pub forced_tool: Option<String>,
    /// The schema of a native output.
    pub output_schema: Option<Value>,
    /// The model settings of the request.
    pub config: LlmConfig,
}

/// A model that answers from a script. Clones share the list of seen requests.
///
/// A request whose history contains n assistant messages gets reply n, counted from 0, in every process. Failures and
/// native outputs add no message to the history. Each of them is given once per instance.
///
/// # Examples
///
/// ```
/// use helix_agents_core::executor::AgentExecutorExt as _;
/// use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
/// use helix_agents_store_memory::MemoryStore;
/// use helix_agents_test::{Reply, ScriptedLlm};
/// # use helix_agents_core::agent::Agent;
///
/// # #[tokio::main]
/// # async fn main() -> helix_agents_core::error::Result<()> {
/// # let agent = Agent::builder("guide").system_prompt("You know cities.").build()?;
/// let model = ScriptedLlm::new([Reply::text("It is Oslo.")]);
/// let runtime = LocalRuntime::builder().store(MemoryStore::new()).llm(model.clone()).build()?;
/// assert_eq!(runtime.run(&agent, "What is Norway's capital?").await?, "It is Oslo.");
/// assert_eq!(model.seen()[0].prompt, "You know cities.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ScriptedLlm {
    replies: Arc<[Reply]>,
    chunk_size: usize,
    pace: Duration,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Vec<SeenRequest>,
    given: BTreeMap<usize, ()>,
}

impl ScriptedLlm {
    /// Creates a model that gives these replies in order.
    pub fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            replies: replies.into_iter().collect(),
            chunk_size: 8,
            pace: Duration::ZERO,
            shared: Arc::default(),
        }
    }

    /// Sets the number of characters of a streamed piece. The default is 8.
    #[must_use]
    pub fn chunk_size(mut self, characters: usize) -> Self {
        self.chunk_size = characters.max(1);
        self
    }

    /// Sets the wait after each piece. The default is no wait.
    #[must_use]
    pub fn pace(mut self, pace: Duration) -> Self {
        self.pace = pace;
        self
    }

    /// Returns all requests so far.
    #[must_use]
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.lock().seen.clone()
    }

    /// Returns the number of requests so far.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.lock().seen.len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reply for a history with that many answers.
    fn reply(&self, answers: usize) -> Option<Reply> {
        let mut shared = self.lock();
        let mut counted = 0;
        for (index, reply) in self.replies.iter().enumerate() {
            if reply.counts() {
                if counted == answers {
                    return Some(reply.clone());
                }
                counted += 1;
            } else if counted == answers && shared.given.insert(index, ()).is_none() {
                return Some(reply.clone());
            }
        }
        None
    }

    async fn deliver(&self, text: &str, piece: impl Fn(&str)) {
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(self.chunk_size).map_or(rest.len(), |(at, _)| at);
            let (now, later) = rest.split_at(end);
            piece(now);
            rest = later;
            if !self.pace.is_zero() {
                tokio::time::sleep(self.pace).await;
            }
        }
    }

    async fn deliver_call(&self, index: usize, call: &ParsedToolCall, sink: &dyn LlmSink) {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        sink.tool_call_start(index, &call.name);
        let text = match &call.arguments {
            Arguments::Json(json) => json.text(),
            Arguments::Malformed(text) => text,
        };
        self.deliver(text, |piece| sink.tool_call_delta(index, piece)).await;
        sink.tool_call(call);
    }

    /// Sends a reply to a sink and returns its result. `answers` is the number of answers in the history, from which
    /// the ids of tool calls derive.
    ///
    /// # Cancel safety
    /// Dropping the future stops the delivery.
    pub async fn answer(&self, reply: Reply, answers: usize, sink: &dyn LlmSink) -> StepResult {
        if let Some(gate) = &reply.gate {
            gate.pass().await;
        }
        let stop_reason = reply.stop_reason;
        if let Some(thinking) = &reply.thinking {
            self.deliver(thinking, |piece| sink.thinking(piece, false)).await;
        }
        if let Some((name, data)) = &reply.custom {
            sink.custom(name, data);
        }
        let thinking = reply.thinking.map(Thinking::new);
        match reply.kind {
            Kind::Text { content, should_stop } => {
                self.deliver(&content, |piece| sink.text_delta(piece)).await;
                StepResult::Text { content, thinking, should_stop, stop_reason }
            }
            Kind::Output(output) => {
                self.deliver(output.text(), |piece| sink.text_delta(piece)).await;
                StepResult::StructuredOutput { output, thinking, stop_reason }
            }
            Kind::Fails { code, delivered } => {
                if let Some(text) = &delivered {
                    self.deliver(text, |piece| sink.text_delta(piece)).await;
                    sink.error(&Error::new(code, "as scripted"));
                }
                StepResult::Error {
                    error: ErrorRecord::new(code, "as scripted"),
                    should_stop: delivered.is_none(),
                    stop_reason,
                }
            }
            Kind::Parts(parts) => {
                let mut calls = 0;
                for part in &parts {
                    match &part.kind {
                        PartKind::Thinking(text) => {
                            self.deliver(text, |piece| sink.thinking(piece, false)).await;
                        }
                        PartKind::Text(text) => {
                            self.deliver(text, |piece| sink.text_delta(piece)).await;
                        }
                        PartKind::Call { name, arguments } => {
                            let call = parsed_call(answers, calls, name, arguments.clone());
                            self.deliver_call(calls, &call, sink).await;
                            calls += 1;
                        }
                        PartKind::Opaque(_) => {}
                    }
                }
                assemble(&parts, answers).into_result(stop_reason, false)
            }
            Kind::Calls { content, calls } => {
                if let Some(text) = &content {
                    self.deliver(text, |piece| sink.text_delta(piece)).await;
                }
                let mut tool_calls = Vec::with_capacity(calls.len());
                for (index, (name, arguments)) in calls.into_iter().enumerate() {
                    let call = parsed_call(answers, index, &name, arguments);
                    self.deliver_call(index, &call, sink).await;
                    tool_calls.push(call);
                }
                let sub_agent_calls = Vec::new();
                StepResult::ToolCalls {
                    content,
                    tool_calls,
                    sub_agent_calls,
                    thinking,
                    stop_reason,
                }
            }
        }
    }
}

#[async_trait]
impl LlmAdapter for ScriptedLlm {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let is_answer = |message: &&SharedMessage| matches!(***message, Message::Assistant(_));
        let answers = request.messages.iter().filter(is_answer).count();
        self.lock().seen.push(SeenRequest::of(&request));
        let Some(reply) = self.reply(answers) else {
            let message = format!("the script has no reply after {answers} answers");
            return Ok(LlmResponse::new(
                StepResult::Error {
                    error: ErrorRecord::new(ErrorCode::ModelError, message),
                    should_stop: true,
                    stop_reason: Some(StopReason::Error),
                },
                Usage::default(),
            ));
        };
        let (usage, unknown) = (reply.usage, reply.stop_reason == Some(StopReason::Unknown));
        let failed_attempts = reply.failed_attempts.clone();
        let layout = reply.layout(answers, &request.config.model);
        let result = tokio::select! {
            biased;
            () = request.cancel.cancelled() => {
                return Err(Error::new(ErrorCode::Cancelled, "the model call was cancelled"));
            }
            result = self.answer(reply, answers, sink) => result,
        };
        let mut response = LlmResponse::new(result, usage);
        response.layout = layout;
        response.failed_attempts = failed_attempts;
        response.model = Some("scripted".into());
        response.raw_stop_reason = unknown.then(|| "as_scripted".to_owned());
        Ok(response)
    }

    fn check(&self, _config: &LlmConfig) -> Result<()> {
        Ok(())
    }
}

impl SeenRequest {
    pub(crate) fn of(request: &LlmRequest<'_>) -> Self {
        let prompt = match &**request.prompt {
            Message::System { content } => content.clone(),
            _ => String::new(),
        };
        Self {
            prompt,
            messages: request.messages.to_vec(),
            tools: request.tools.specs().iter().map(|spec| spec.name.to_string()).collect(),
            forced_tool: match request.tool_choice {
                ToolChoice::Auto => None,
                ToolChoice::Tool(name) => Some(name.to_owned()),
            },
            output_schema: request.output_schema.map(|schema| schema.value().clone()),
            config: request.config.clone(),
        }
    }
}

/// A model with a script for each agent, by name.
///
/// # Examples
///
/// ```
/// use helix_agents_core::executor::AgentExecutorExt as _;
/// use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
/// use helix_agents_store_memory::MemoryStore;
/// use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm};
/// # use helix_agents_core::agent::Agent;
///
/// # #[tokio::main]
/// # async fn main() -> helix_agents_core::error::Result<()> {
/// # let author = Agent::builder("author").system_prompt("Write.").build()?;
/// # let critic = Agent::builder("critic").system_prompt("Criticise.").build()?;
/// let model = RoutingScriptedLlm::new()
///     .agent("author", ScriptedLlm::new([Reply::text("A draft.")]))
///     .agent("critic", ScriptedLlm::new([Reply::text("Too short.")]));
/// let runtime = LocalRuntime::builder().store(MemoryStore::new()).llm(model).build()?;
/// assert_eq!(runtime.run(&author, "Write about gates.").await?, "A draft.");
/// assert_eq!(runtime.run(&critic, "Is it good?").await?, "Too short.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct RoutingScriptedLlm {
    scripts: BTreeMap<String, ScriptedLlm>,
}

impl RoutingScriptedLlm {
    /// Creates a model without scripts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the script of an agent.
    #[must_use]
    pub fn agent(mut self, name: &str, script: ScriptedLlm) -> Self {
        self.scripts.insert(name.to_owned(), script);
        self
    }
}

#[async_trait]
impl LlmAdapter for RoutingScriptedLlm {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let script = self.scripts.get(request.agent).ok_or_else(|| {
            Error::new(ErrorCode::ModelUnknown, "no script for this agent")
                .with_context("agent", request.agent)
        })?;
        script.generate_step(request, sink).await
    }

    fn check(&self, _config: &LlmConfig) -> Result<()> {
        Ok(())
    }
}
