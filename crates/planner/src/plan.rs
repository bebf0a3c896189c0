//! A plan in the transcript: the content of the message whose calls execute it.

use std::fmt;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::message::{AssistantMessage, Message};
use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::decision::NextAction;

/// The prefix of the content of every recorded plan.
const BEGIN: &str = "{\"helix_agents_plan\":";

/// The version of the format that this build writes.
const FORM: u32 = 1;

/// The reason why a loop stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// The planner decided to answer, or had no commands.
    Response,
    /// The maximum number of rounds was executed.
    MaxRounds,
    /// The time limit of the loop was reached.
    Timeout,
    /// The planner requested commands that had already failed twice in a row.
    NoProgress,
    /// This is the last step of the turn, or the model is forced to return its output.
    AnswerDue,
}

/// The reason why a plan cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Problem {
    /// The plan ends in the middle.
    CutOff,
    /// The plan is not JSON.
    Malformed,
    /// The plan has more commands than [`MAX_COMMANDS`].
    TooLong,
}

/// The maximum number of commands of a plan.
pub const MAX_COMMANDS: usize = 64;

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutOff => f.write_str("the plan was cut off; write a shorter one"),
            Self::Malformed => f.write_str("the plan was not one JSON object"),
            Self::TooLong => write!(f, "the plan had more than {MAX_COMMANDS} commands"),
        }
    }
}

/// A recorded planning step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedPlan {
    #[serde(rename = "helix_agents_plan")]
    form: u32,
    pub(crate) round_index: u32,
    pub(crate) next_action: NextAction,
    pub(crate) execution_commands: Vec<Command>,
    /// The reason why the loop stops, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stopped: Option<Stop>,
    /// The problem of the plan, if it has to be made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<Problem>,
    /// The start time of the loop, if its time is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) began: Option<Timestamp>,
}

impl RecordedPlan {
    fn new(round_index: u32, began: Option<Timestamp>) -> Self {
        Self {
            form: FORM,
            round_index,
            next_action: NextAction::Response,
            execution_commands: Vec::new(),
            stopped: None,
            problem: None,
            began,
        }
    }

    /// Creates a plan that is executed.
    pub(crate) fn execute(round: u32, began: Option<Timestamp>, commands: Vec<Command>) -> Self {
        let next_action = NextAction::Execute;
        Self { next_action, execution_commands: commands, ..Self::new(round, began) }
    }

    /// Creates a plan after which the agent answers. Its commands are not executed.
    pub(crate) fn stop(
        round: u32,
        began: Option<Timestamp>,
        stop: Stop,
        commands: Vec<Command>,
    ) -> Self {
        Self { stopped: Some(stop), execution_commands: commands, ..Self::new(round, began) }
    }

    /// Creates a plan that has to be made again.
    pub(crate) fn unusable(round: u32, began: Option<Timestamp>, problem: Problem) -> Self {
        Self { problem: Some(problem), ..Self::new(round, began) }
    }

    /// Returns the content of the plan's message.
    pub(crate) fn content(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a message, if it is a plan.
    pub(crate) fn of(message: &Message) -> Option<(Self, &AssistantMessage)> {
        let Message::Assistant(message) = message else { return None };
        let content = message.content.as_deref().filter(|content| content.starts_with(BEGIN))?;
        let plan: Self = serde_json::from_str(content).ok()?;
        (plan.form == FORM).then_some((plan, &**message))
    }
}

#[cfg(test)]
mod tests;
