//! Descriptions of plans for users: a round is described by the purposes of its calls.

use serde::Deserialize;

use crate::command::Command;
use crate::plan::Stop;

/// The members of a plan that are described.
#[derive(Deserialize)]
struct Plan {
    round_index: u32,
    execution_commands: Vec<Command>,
    #[serde(default)]
    stopped: Option<Stop>,
}

/// Returns a description of a plan in one sentence, from the data of a [`PLAN_CHUNK`](crate::PLAN_CHUNK).
/// Returns `None` if the data are no plan, because chunks of other programs can have the same name.
#[must_use]
pub fn describe_plan(data: &str) -> Option<String> {
    let plan: Plan = serde_json::from_str(data).ok()?;
    let round = plan.round_index.saturating_add(1);
    Some(match plan.stopped {
        Some(Stop::Response) => "no more plans".to_owned(),
        Some(stop) => format!("no more plans: {}", reason(stop)),
        None if plan.execution_commands.is_empty() => {
            format!("the plan of round {round} is not usable")
        }
        None => {
            let purposes = plan.execution_commands.iter().map(|command| {
                let purpose = command.purpose.trim();
                if purpose.is_empty() { command.tool_name.as_str() } else { purpose }
            });
            format!("plan of round {round}: {}", purposes.collect::<Vec<_>>().join(", "))
        }
    })
}

fn reason(stop: Stop) -> &'static str {
    match stop {
        Stop::Response => "the planner has decided to answer",
        Stop::MaxRounds => "the maximum number of rounds is reached",
        Stop::Timeout => "the planning timeout has expired",
        Stop::NoProgress => "the plan repeats calls that failed twice",
        Stop::AnswerDue => "the answer is due",
    }
}

#[cfg(test)]
mod tests;
