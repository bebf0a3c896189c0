//! Executes the model call of a step.

use std::collections::BTreeSet;
use std::convert::identity;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use helix_agents_core::budget::Price;
use helix_agents_core::clock::Clock;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::fault;
use helix_agents_core::hooks::HookContext;
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmRequest, LlmResponse, LlmSink, ToolChoice};
use helix_agents_core::message::{Message, SharedMessage};
use helix_agents_core::panics::{Panicked, caught_async};
use helix_agents_core::step::{ParsedToolCall, StepResult, StopReason};
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::FINISH_TOOL;
use helix_agents_core::trace::Operation;
use helix_agents_core::usage::Usage;
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::hook_chain::HookChain;
use crate::lease_view::{LeaseMargin, LeaseView};
use crate::stream_writer::{AttemptHandle, StreamWriter};

/// The outcome of a model call.
pub(crate) struct CallOutcome {
    pub(crate) response: LlmResponse,
    /// The price of the model.
    pub(crate) price: Option<Price>,
    /// The time of the first output, by the process's monotonic clock.
    pub(crate) first: Option<Duration>,
}

impl CallOutcome {
    /// Creates the outcome of a call that was not made.
    fn failed(error: &Error) -> Self {
        Self { response: failed(error), price: None, first: None }
    }
}

/// Makes the model call. The adapter retries failed calls (`helix_agents_llm`). Provider failures and refusals by hooks are
/// returned as responses, too.
pub(crate) async fn call(
    driver: &Driver,
    step: u32,
    force_completion: bool,
    attempt: AttemptHandle,
    cx: &HookContext,
    lease_view: &LeaseView,
) -> Result<CallOutcome> {
    let agent = &driver.agent;
    let change = match driver.hooks.before_llm_call(cx, agent.llm()).await {
        Ok(change) => change,
        Err(reason) => {
            return Ok(CallOutcome::failed(&helix_agents_core::hooks::refused(&reason)));
        }
    };
    let config = change.config.as_ref().unwrap_or_else(|| agent.llm());
    let session = driver.journal.session();
    let price = agent.prices().get(&config.model).copied();
    if price.is_none() && session.budget(agent).cost.is_some() {
        return Ok(CallOutcome::failed(&price_missing(&config.model)));
    }
    let prompt = match change.prompt {
        Some(content) => SharedMessage::new(Message::System { content }),
        None => match agent.system_message(session.state()) {
            Ok(message) => message,
            Err(error) => return Ok(CallOutcome::failed(&error)),
        },
    };
    let tool_choice = match agent.completion_tool() {
        Some(name) if force_completion => ToolChoice::Tool(name),
        _ => ToolChoice::Auto,
    };
    let cancel = CancellationToken::new();
    let request = LlmRequest::new(session.id(), config, &prompt, session.transcript(), &cancel)
        .agent(agent.name())
        .tools(agent.effective_tools())
        .tool_choice(tool_choice)
        .interrupt(&driver.interrupt)
        .budget(session.budget(agent))
        .created_at(session.created_at())
        .trace(session.trace_parent(Operation::ModelCall { step }))
        .output_schema(agent.native_output_schema());
    // Adds up the entries of the turn, which adapters of language models do not need.
    let request = match agent.adapter() {
        Some(_) => request.turn_usage(session.turn_usage()),
        None => request,
    };
    let sink = ModelSink {
        stream_writer: &driver.stream_writer,
        hooks: &driver.hooks,
        cx,
        attempt,
        step,
        hidden: Mutex::default(),
        clock: &*driver.context.clock,
        first: OnceLock::new(),
    };
    // Hooks and prompts may have blocked the thread for longer than the lease, so check the lease again before the
    // request is sent to the provider.
    lease_view.wait_for_margin(LeaseMargin::Third).await;
    fault::point("model.before");
    let adapter = agent.adapter().unwrap_or(&driver.context.llm);
    let called = caught_async("the model adapter", || adapter.generate_step(request, &sink));
    let response = called.await.map_err(Panicked::into_error).and_then(identity);
    fault::point("model.after");
    let response = response.unwrap_or_else(|error| failed(&error));
    driver.hooks.after_llm_call(cx, &response).await;
    Ok(CallOutcome { response, price, first: sink.first.get().copied() })
}

/// Returns the error for a model without a price. A cost limit cannot be enforced for it.
fn price_missing(model: &str) -> Error {
    let message = "the budget limits costs, and the model has no price; give it one with `prices`";
    Error::new(ErrorCode::ConfigInvalid, message).with_context("model", model)
}

fn failed(error: &Error) -> LlmResponse {
    LlmResponse::new(
        StepResult::Error {
            error: error.record(),
            should_stop: true,
            stop_reason: Some(StopReason::Error),
        },
        Usage::default(),
    )
}

/// The sink of the model adapter. It forwards deltas to the stream and the hooks.
struct ModelSink<'a> {
    stream_writer: &'a StreamWriter,
    hooks: &'a HookChain,
    cx: &'a HookContext,
    attempt: AttemptHandle,
    step: u32,
    /// The indices of `__finish__` calls, which are not shown in the stream.
    hidden: Mutex<BTreeSet<u32>>,
    clock: &'a dyn Clock,
    /// The time of the first output.
    first: OnceLock<Duration>,
}

impl ModelSink<'_> {
    fn note_output(&self) {
        self.first.get_or_init(|| self.clock.monotonic());
    }
}

impl LlmSink for ModelSink<'_> {
    fn text_delta(&self, delta: &str) {
        self.note_output();
        self.stream_writer.show_text(self.attempt, self.step, delta);
        self.hooks.text_delta(self.cx, delta);
    }

    fn thinking(&self, content: &str, complete: bool) {
        self.note_output();
        let kind = ChunkKind::Thinking { content: content.to_owned(), complete };
        self.stream_writer.show(Some(self.attempt), self.step, kind);
        self.hooks.thinking(self.cx, content, complete);
    }

    fn tool_call_start(&self, index: u32, name: &str) {
        self.note_output();
        if name == FINISH_TOOL {
            self.hidden.lock().unwrap_or_else(PoisonError::into_inner).insert(index);
            return;
        }
        let kind = ChunkKind::ToolArgStart { index, tool: name.into() };
        self.stream_writer.show(Some(self.attempt), self.step, kind);
    }

    fn tool_call_delta(&self, index: u32, delta: &str) {
        if self.hidden.lock().unwrap_or_else(PoisonError::into_inner).contains(&index) {
            return;
        }
        let kind = ChunkKind::ToolArgDelta { index, delta: delta.to_owned() };
        self.stream_writer.show(Some(self.attempt), self.step, kind);
    }

    fn tool_call(&self, _call: &ParsedToolCall) {}

    fn error(&self, error: &Error) {
        tracing::debug!(code = error.code().as_str(), "the model call failed");
    }

    fn custom(&self, name: &str, data: &Json) {
        let kind = ChunkKind::Custom { name: name.to_owned(), data: data.text().to_owned() };
        self.stream_writer.show(Some(self.attempt), self.step, kind);
    }

    fn chunk(&self, chunk: ChunkKind) {
        self.stream_writer.show(Some(self.attempt), self.step, chunk);
    }
}

/// Returns `true` if the response only reports that the call was cancelled.
pub(crate) fn was_cancelled(response: &LlmResponse) -> bool {
    matches!(&response.result, StepResult::Error { error, .. } if error.is(ErrorCode::Cancelled))
}
