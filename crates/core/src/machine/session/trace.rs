//! The trace of a turn.

use super::SessionOverview;
use crate::trace::{Operation, SpanId, TraceId, TraceParent};

impl SessionOverview {
    /// Returns the context that an operation of the current turn passes on: the trace of the turn, with the operation's
    /// span as the parent. Every process that continues the session returns the same context.
    ///
    /// The trace is the caller's if it gave one, otherwise that of the parent's turn (for a sub-agent), otherwise one that
    /// is derived from the session id and the turn number.
    #[must_use]
    pub fn trace_parent(&self, operation: Operation<'_>) -> TraceParent {
        let span = SpanId::of(&self.id, operation);
        match self.turn_parent() {
            Some(above) => above.with_span(span),
            None => TraceParent::new(TraceId::of_turn(&self.id, self.turn()), span, true),
        }
    }

    /// Returns the context that the current turn belongs to: the caller's, or that of the parent's call (for a sub-agent).
    #[must_use]
    pub fn turn_parent(&self) -> Option<TraceParent> {
        self.fold_state.rare.trace.or_else(|| self.parent()?.trace)
    }

    /// Returns `true` if a caller gave the trace of the current turn, to this session or to an ancestor. The caller has then
    /// decided whether the trace is sampled.
    #[must_use]
    pub fn is_trace_given(&self) -> bool {
        self.fold_state.rare.trace.is_some()
            || self.parent().is_some_and(|parent| parent.is_trace_given)
    }
}
