//! The plan-execute options of an agent file.

use helix_agents::agent::AnyAgent;
use helix_agents::planner::PlanOptions;
use helix_agents::runtime_local::TokioClock;

use super::document::AgentFile;
use super::form::Form;
use super::places::{Places, Problem};

impl AgentFile {
    /// The plan-execute options, if the file has a `[planner]` table.
    pub(crate) fn plan(&self, agent: &AnyAgent) -> Option<PlanOptions> {
        let form = self.form.planner.as_ref()?;
        let mut options = PlanOptions::default()
            .max_rounds(form.max_rounds)
            .max_result_bytes(form.max_result_bytes);
        if let Some(timeout) = form.timeout {
            options = options.timeout(timeout.0, TokioClock::new());
        }
        if let Some(model) = &form.model {
            let mut config = agent.llm().clone();
            config.model.clone_from(model);
            options = options.llm(config);
        }
        Some(options)
    }
}

/// Returns problems of settings that are valid alone but not together.
pub(super) fn problems(form: &Form, places: &Places) -> Vec<Problem> {
    let Some(planner) = &form.planner else { return Vec::new() };
    let mut problems = Vec::new();
    let (rounds, most) = (planner.max_rounds, form.limits.max_steps);
    if rounds.saturating_add(1) > most {
        let message = format!(
            "{rounds} rounds and the answer take {} steps, and `limits.max_steps` is {most}",
            rounds.saturating_add(1)
        );
        problems.push(places.problem("/planner/max_rounds", message));
    }
    if form.tools.is_empty() {
        let message = "a planner needs tools: the file has no `[tools.…]`";
        problems.push(places.problem("/planner", message));
    }
    problems
}
