//! Repairs the state if the changes of concurrent tool calls, applied in call order, do not fit the
//! agent's state type.

use serde_json::Value;

use crate::agent::AgentDefinition;
use crate::session::Session;
use crate::state::{Patch, merge_until_fits};

/// Returns the patch that makes the state fit the agent's state type again if the changes of
/// concurrent calls conflict. The change of each single call was checked when it was made.
pub(super) fn repair_state(session: &Session, agent: &AgentDefinition) -> Option<Patch> {
    let step = session.open_step().filter(|step| step.open_patches().nth(1).is_some())?;
    let fits = |state: &Value| agent.check_state(state).is_ok();
    let found = session.step_state();
    if fits(&found) {
        return None;
    }
    let repair =
        Patch::between(&found, &merge_until_fits(session.state(), step.open_patches(), fits));
    (!repair.is_empty()).then_some(repair)
}
