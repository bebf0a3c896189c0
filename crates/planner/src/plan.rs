//! A plan as it stands in the transcript: the content of the message whose calls carry it out.

use std::fmt;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::message::{AssistantMessage, Message};
use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::decision::NextAction;

/// How the content of every recorded plan begins.
const BEGIN: &str = "{\"helix_agents_plan\":";

/// The number of the form that this build writes.
const FORM: u32 = 1;

/// Why a loop stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// The planner said so, or had no commands.
    Response,
    /// As many rounds were carried out as may be.
    MaxRounds,
    /// The time of the loop is up.
    Timeout,
    /// The planner wanted once more what had failed twice in a row.
    NoProgress,
    /// It is the last step that the turn may take, or the model has to hand in its output.
    AnswerDue,
}

/// Why a plan cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Problem {
    /// It ends in the middle.
    CutOff,
    /// It is not JSON.
    Malformed,
    /// It has more commands than [`MAX_COMMANDS`].
    TooLong,
}

/// The most commands of one plan.
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

/// One planning step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedPlan {
    #[serde(rename = "helix_agents_plan")]
    form: u32,
    pub(crate) round_index: u32,
    pub(crate) next_action: NextAction,
    pub(crate) execution_commands: Vec<Command>,
    /// Why the loop stops, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stopped: Option<Stop>,
    /// What is wrong with the plan, if it has to be made again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<Problem>,
    /// When the loop began, if its time is limited.
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

    /// A plan that is carried out.
    pub(crate) fn execute(round: u32, began: Option<Timestamp>, commands: Vec<Command>) -> Self {
        let next_action = NextAction::Execute;
        Self { next_action, execution_commands: commands, ..Self::new(round, began) }
    }

    /// A plan after which the agent answers. The commands are those that are not carried out.
    pub(crate) fn stop(
        round: u32,
        began: Option<Timestamp>,
        stop: Stop,
        commands: Vec<Command>,
    ) -> Self {
        Self { stopped: Some(stop), execution_commands: commands, ..Self::new(round, began) }
    }

    /// A plan that has to be made again.
    pub(crate) fn unusable(round: u32, began: Option<Timestamp>, problem: Problem) -> Self {
        Self { problem: Some(problem), ..Self::new(round, began) }
    }

    /// The content of its message.
    pub(crate) fn content(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a message, if it is a plan.
    pub(crate) fn of(message: &Message) -> Option<(Self, &AssistantMessage)> {
        let Message::Assistant(message) = message else { return None };
        let content = message.content.as_deref().filter(|it| it.starts_with(BEGIN))?;
        let plan: Self = serde_json::from_str(content).ok()?;
        (plan.form == FORM).then_some((plan, &**message))
    }
}

#[cfg(test)]
mod tests;
