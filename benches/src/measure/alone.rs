//! The engines without the framework: workflows of empty steps, as many as a run has effects. They
//! show the cost of the engine itself.

use crate::job::Work;

pub(super) mod dbos;
pub(super) mod temporal;

/// Returns the number of effects of a run: its model calls and its tool calls.
fn effects(work: Work) -> u32 {
    match work {
        Work::Tools { calls, .. } => calls + work.steps(),
        Work::Text { .. } | Work::Suspend => work.steps(),
    }
}
