//! Merges the state changes of a step's calls, which may have run concurrently.

use std::sync::Arc;

use super::SessionOverview;
use super::changes::Change;
use super::fold_state::FoldState;
use super::history::HistorySink;

impl SessionOverview {
    /// Applies the state changes of the open step's results in call order, regardless of the order
    /// in which the calls ended. Changes by finish tools are applied last, because these tools ran
    /// last.
    pub(super) fn apply_patches_in_call_order(&mut self, sink: &mut HistorySink<'_>) {
        let FoldState { step: Some(step), state, .. } = &mut self.fold_state else {
            return;
        };
        for finish in step.open_changes() {
            finish.state_patch.apply(Arc::make_mut(state));
            sink.add(|history| history.changes.made(Change::Call(Arc::clone(finish)), state));
        }
        for call in step.calls.iter_mut().filter(|call| call.finish.is_some()) {
            call.patched = true;
        }
    }
}
