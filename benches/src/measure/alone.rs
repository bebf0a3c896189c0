//! Engines without us: a workflow of steps that do nothing, as many as a run has effects. It is what an engine costs by itself.

use crate::job::Work;

pub(super) mod dbos;
pub(super) mod temporal;

/// The effects of a run: its model calls and its tool calls.
fn effects(work: Work) -> u32 {
    match work {
        Work::Tools { calls, .. } => calls + work.steps(),
        Work::Text { .. } | Work::Suspend => work.steps(),
    }
}
