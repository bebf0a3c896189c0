//! The trace of a turn.

use super::SessionOverview;
use crate::trace::{Operation, SpanId, TraceId, TraceParent};

impl SessionOverview {
    /// Returns the trace of the current turn and the span of one of its operations: the context of what the operation
    /// does. It follows from the log, so every process that continues the session returns the same one.
    ///
    /// The trace is the one that the caller gave to the turn. Otherwise it is that of the parent's turn if the session is
    /// a sub-agent's, and else one that follows from the session and the number of the turn.
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
