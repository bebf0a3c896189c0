//! The model call that makes a plan. The call is cancelled as soon as the rest of the plan cannot
//! matter.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Poll;

use helix_agents_core::error::{Error, Result};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmAdapter, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::step::ParsedToolCall;

use crate::watch::Watch;

/// Makes the call. Returns `None` if the plan certainly says `response` and the call was cancelled
/// or failed.
///
/// # Errors
/// Returns the errors of the adapter.
pub(crate) async fn stream_plan(
    model: &dyn LlmAdapter,
    request: LlmRequest<'_>,
    sink: &dyn LlmSink,
) -> Result<Option<LlmResponse>> {
    let sink = PlanSink { sink, watch: Mutex::default(), certain: AtomicBool::new(false) };
    let mut call = model.generate_step(request, &sink);
    // The sink is called while the call is polled, so this is the time to check. Returning drops
    // the call, which closes its connection.
    let ended = poll_fn(|cx| match call.as_mut().poll(cx) {
        Poll::Ready(response) => Poll::Ready(Some(response)),
        Poll::Pending if sink.is_certain() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await;
    match ended.transpose() {
        Err(_) | Ok(None) if sink.is_certain() => Ok(None),
        Ok(Some(response)) if sink.is_certain() && is_error(&response) => Ok(None),
        ended => ended,
    }
}

fn is_error(response: &LlmResponse) -> bool {
    matches!(response.result, helix_agents_core::step::StepResult::Error { .. })
}

/// Receives the text of a plan. It is not the agent's answer, so it is not shown as text.
struct PlanSink<'a> {
    sink: &'a dyn LlmSink,
    watch: Mutex<Watch>,
    certain: AtomicBool,
}

impl PlanSink<'_> {
    fn is_certain(&self) -> bool {
        self.certain.load(Ordering::Relaxed)
    }
}

impl LlmSink for PlanSink<'_> {
    fn text_delta(&self, delta: &str) {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        self.certain.store(watch.feed(delta), Ordering::Relaxed);
    }

    fn thinking(&self, content: &str, complete: bool) {
        self.sink.thinking(content, complete);
    }

    fn tool_call_start(&self, _index: u32, _name: &str) {}

    fn tool_call_delta(&self, _index: u32, _delta: &str) {}

    fn tool_call(&self, _call: &ParsedToolCall) {}

    fn error(&self, error: &Error) {
        self.sink.error(error);
    }

    fn custom(&self, name: &str, data: &Json) {
        self.sink.custom(name, data);
    }
}
