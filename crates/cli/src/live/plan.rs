//! Descriptions of plans: a round is described by the purposes of its calls.

use helix_agents::planner::{Command, PLAN_CHUNK, Stop, TOOL_LOGS_CHUNK};
use serde::Deserialize;

/// The members of a plan that are shown.
#[derive(Deserialize)]
struct Plan {
    round_index: u32,
    execution_commands: Vec<Command>,
    #[serde(default)]
    stopped: Option<Stop>,
}

/// Describes a custom chunk of the planner. Returns `None` for other chunks, and `Some(None)` if there is
/// nothing to show.
pub(super) fn describe(name: &str, data: &str) -> Option<Option<String>> {
    match name {
        // The results of the calls, which have already been shown.
        TOOL_LOGS_CHUNK => Some(None),
        PLAN_CHUNK => {
            let plan: Plan = serde_json::from_str(data).ok()?;
            Some(Some(plan.describe()))
        }
        _ => None,
    }
}

impl Plan {
    fn describe(&self) -> String {
        let round = self.round_index.saturating_add(1);
        match self.stopped {
            Some(Stop::Response) => "no more plans".to_owned(),
            Some(stop) => {
                let reason = match stop {
                    Stop::MaxRounds => "the maximum number of rounds is reached",
                    Stop::Timeout => "the planning timeout has expired",
                    Stop::NoProgress => "the plan repeats calls that failed twice",
                    Stop::AnswerDue => "the answer is due",
                    _ => "planning has ended",
                };
                format!("no more plans: {reason}")
            }
            None if self.execution_commands.is_empty() => {
                format!("the plan of round {round} is not usable")
            }
            None => {
                let purposes = self.execution_commands.iter().map(|command| {
                    let purpose = command.purpose.trim();
                    if purpose.is_empty() { command.tool_name.as_str() } else { purpose }
                });
                format!("plan of round {round}: {}", purposes.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests;
