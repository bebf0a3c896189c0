//! Plans in words: a round of calls is told by what they are for.

use helix_agents::planner::{Command, PLAN_CHUNK, Stop, TOOL_LOGS_CHUNK};
use serde::Deserialize;

/// What is told of a plan.
#[derive(Deserialize)]
struct Plan {
    round_index: u32,
    execution_commands: Vec<Command>,
    #[serde(default)]
    stopped: Option<Stop>,
}

/// What a chunk of a name says, if it is one of plans; nothing if that was shown before.
pub(super) fn told(name: &str, data: &str) -> Option<Option<String>> {
    match name {
        // The results of the calls, which were shown as they came.
        TOOL_LOGS_CHUNK => Some(None),
        PLAN_CHUNK => {
            let plan: Plan = serde_json::from_str(data).ok()?;
            Some(Some(plan.tell()))
        }
        _ => None,
    }
}

impl Plan {
    fn tell(&self) -> String {
        let round = self.round_index.saturating_add(1);
        match self.stopped {
            Some(Stop::Response) => "no more plans".to_owned(),
            Some(stop) => {
                let why = match stop {
                    Stop::MaxRounds => "there were as many rounds as may be",
                    Stop::Timeout => "the time for plans is up",
                    Stop::NoProgress => "what failed twice was wanted once more",
                    Stop::AnswerDue => "the answer is due",
                    _ => "the loop is over",
                };
                format!("no more plans: {why}")
            }
            None if self.execution_commands.is_empty() => {
                format!("the plan of round {round} cannot be used")
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
