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
        let given = self.fold_state.rare.trace;
        match given.or_else(|| self.parent()?.trace) {
            Some(above) => above.with_span(span),
            None => TraceParent::new(TraceId::of_turn(&self.id, self.turn()), span, true),
        }
    }
}
