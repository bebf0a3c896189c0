//! The plan-execute options of an agent file.

use std::sync::Arc;

use helix_agents_core::agent::AnyAgent;
use helix_agents_core::clock::Clock;
use helix_agents_planner::PlanOptions;

use crate::clock::SharedClock;
use crate::config::AgentConfig;
use crate::source_map::{Problem, SourceMap};

/// Returns the plan-execute options, if the file has a `[planner]` table.
pub(crate) fn options(
    config: &AgentConfig,
    agent: &AnyAgent,
    clock: &Arc<dyn Clock>,
) -> Option<PlanOptions> {
    let planner = config.planner.as_ref()?;
    let mut options = PlanOptions::default()
        .max_rounds(planner.max_rounds)
        .max_result_bytes(planner.max_result_bytes);
    if let Some(timeout) = planner.timeout {
        options = options.timeout(timeout.0, SharedClock(Arc::clone(clock)));
    }
    if let Some(model) = &planner.model {
        let mut llm = agent.llm().clone();
        llm.model.clone_from(model);
        options = options.llm(llm);
    }
    Some(options)
}

/// Returns problems of settings that are valid alone but not together.
pub(crate) fn problems(config: &AgentConfig, source_map: &SourceMap) -> Vec<Problem> {
    let Some(planner) = &config.planner else { return Vec::new() };
    let mut problems = Vec::new();
    let (rounds, most) = (planner.max_rounds, config.limits.max_steps);
    if rounds.saturating_add(1) > most {
        let message = format!(
            "`max_rounds = {rounds}` needs {} steps, but `limits.max_steps` is {most}; raise \
             `max_steps` or lower `max_rounds`",
            rounds.saturating_add(1)
        );
        problems.push(source_map.problem("/planner/max_rounds", message));
    }
    if config.tools.is_empty() {
        let message = "a planner needs tools: the file has no `[tools.…]`";
        problems.push(source_map.problem("/planner", message));
    }
    problems
}
