//! The spans of model calls.

use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::event::ModelReply;
use helix_agents_core::id::RunId;
use helix_agents_core::trace::{Operation, SpanId};

use super::{Scope, messages, text_of, times};
use crate::content::Field;
use crate::conventions as names;
use crate::span::{Span, SpanKind};

/// The name of a model whose adapter does not name it.
const UNKNOWN: &str = "unknown";

impl Scope<'_> {
    /// Returns the span of a model call.
    pub(super) fn model_call(&self, run: &RunId, at: Timestamp, reply: &Arc<ModelReply>) -> Span {
        let requested = reply.requested.as_ref().or(reply.model.as_ref());
        let model = requested.map_or(UNKNOWN, |model| model);
        let operation = Operation::ModelCall { step: reply.step };
        let times = times(at, reply.ended, reply.took_ms);
        let mut span = self.span(operation, SpanKind::Client, "chat", model, times);
        span.parent = Some(SpanId::of(self.session.id(), Operation::Run(run)));
        span.set(names::PROVIDER, reply.provider.as_deref().unwrap_or(UNKNOWN));
        span.set_some(names::REQUEST_MODEL, requested.map(|name| &**name));
        span.set_some(names::RESPONSE_MODEL, reply.model.as_deref());
        span.set_some(names::RESPONSE_ID, reply.response_id.as_deref());
        span.set(names::STEP, reply.step);
        span.set(names::ATTEMPTS, reply.failed_attempts.len() as u64 + 1);
        if let Some(reason) = reply.stop_reason {
            span.set(names::FINISH_REASONS, vec![text_of(&reason)]);
        }
        let usage = reply.total_usage();
        if !usage.is_zero() {
            span.set(names::INPUT_TOKENS, usage.input_tokens);
            span.set(names::OUTPUT_TOKENS, usage.output_tokens);
        }
        let some = |tokens: u64| Some(tokens).filter(|tokens| *tokens > 0);
        span.set_some(names::CACHE_READ_TOKENS, some(usage.cached_tokens));
        span.set_some(names::REASONING_TOKENS, some(usage.reasoning_tokens));
        span.set_some(names::COST, reply.cost.map(|cost| cost.as_usd()));
        #[expect(clippy::cast_precision_loss, reason = "no call takes that long")]
        let first = reply.first_ms.map(|millis| millis as f64 / 1000.0);
        span.set_some(names::TIME_TO_FIRST_CHUNK, first);
        if self.content().is_recorded() {
            span.set(names::INPUT_MESSAGES, messages::input(self, reply));
            span.set_some(names::OUTPUT_MESSAGES, messages::output(self, reply));
        }
        if let Some(error) = &reply.error {
            span.set(names::ERROR_TYPE, &*error.code);
            span.error = Some(match self.content().is_recorded() {
                true => self.content().attribute(Field::Error, &error.message),
                false => error.code.clone().into_owned(),
            });
        }
        span
    }
}
