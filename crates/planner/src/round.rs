//! The state of a turn's rounds, folded from its transcript, so that any process can continue the
//! loop.

use helix_agents_core::clock::Timestamp;
use helix_agents_core::message::{AssistantMessage, Message, SharedMessage, ToolResultMessage};
use helix_agents_core::step::is_correction;
use serde_json::Value;

use crate::command::Command;
use crate::executor::EXECUTE_COMMANDS;
use crate::plan::{Problem, RecordedPlan, Stop};
use crate::record::ExecutionRecord;

/// The number of times in a row that the same commands may fail before they are no longer executed.
const MAX_FAILED_REPEATS: u32 = 2;

/// The progress of the rounds of a turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RoundState {
    /// The records of all commands so far.
    pub done_plans: Vec<ExecutionRecord>,
    /// The records of the previous round.
    pub last_round_records: Vec<ExecutionRecord>,
    /// The number of the current round, from 0.
    pub round_index: u32,
    /// The reason why the loop stopped, if the planner stopped it.
    pub stopped: Option<Stop>,
    /// The problems of the plans of this round so far.
    pub(crate) problems: Vec<Problem>,
    /// The start time of the loop, if its time is limited.
    pub(crate) began: Option<Timestamp>,
    last_commands: Vec<Command>,
    /// The number of times in a row that `last_commands` were executed and all of them failed.
    failed_repeats: u32,
}

impl RoundState {
    /// Returns the state of the last turn of a transcript.
    #[must_use]
    pub fn of(transcript: &[SharedMessage]) -> Self {
        Turn::of(transcript).rounds
    }

    /// Returns `true` if these commands failed so often that another execution is useless.
    pub(crate) fn is_stuck_on(&self, commands: &[Command]) -> bool {
        self.failed_repeats >= MAX_FAILED_REPEATS && self.repeats(commands)
    }

    fn repeats(&self, commands: &[Command]) -> bool {
        let pairs = || self.last_commands.iter().zip(commands);
        self.last_commands.len() == commands.len() && pairs().all(|(a, b)| a.calls_the_same(b))
    }

    fn take(&mut self, plan: RecordedPlan, records: Vec<ExecutionRecord>) {
        self.began = self.began.or(plan.began);
        if let Some(problem) = plan.problem {
            self.problems.push(problem);
            return;
        }
        self.problems.clear();
        self.stopped = plan.stopped;
        if plan.stopped.is_some() {
            return;
        }
        let repeats = if self.repeats(&plan.execution_commands) { self.failed_repeats } else { 0 };
        let failed = records.iter().all(|record| !record.success);
        self.failed_repeats = if failed { repeats + 1 } else { 0 };
        self.last_commands = plan.execution_commands;
        self.done_plans.extend(records.iter().cloned());
        self.last_round_records = records;
        self.round_index += 1;
    }
}

/// Returns the raw records of the last turn of a transcript, in order.
#[must_use]
pub fn tool_logs(transcript: &[SharedMessage]) -> Vec<ExecutionRecord> {
    RoundState::of(transcript).done_plans
}

/// A transcript, split at the start of its last turn.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    /// The messages of the earlier turns.
    pub(crate) before: &'a [SharedMessage],
    /// The messages that started the turn.
    pub(crate) asked: &'a [SharedMessage],
    /// The answers since then and their corrections, without the messages of the loop.
    pub(crate) answers: Vec<SharedMessage>,
    /// The state of the loop.
    pub(crate) rounds: RoundState,
}

impl<'a> Turn<'a> {
    pub(crate) fn of(transcript: &'a [SharedMessage]) -> Self {
        let end = transcript.iter().rposition(begins_turn).map_or(0, |last| last + 1);
        let (head, rest) = transcript.split_at(end);
        let from =
            head.iter().rposition(|message| !begins_turn(message)).map_or(0, |other| other + 1);
        let (before, asked) = head.split_at(from);
        let (rounds, answers) = split_loop(rest);
        Self { before, asked, answers, rounds }
    }

    /// Returns `true` if the turn has an answer, valid or not. No plan is made then.
    pub(crate) fn is_answered(&self) -> bool {
        !self.answers.is_empty()
    }
}

/// Splits messages into the loop's state and the messages outside of the loop.
pub(crate) fn split_loop(messages: &[SharedMessage]) -> (RoundState, Vec<SharedMessage>) {
    let mut rounds = RoundState::default();
    let mut others = Vec::new();
    let mut rest = messages;
    while let Some((message, after)) = rest.split_first() {
        rest = after;
        let Some((plan, calls)) = RecordedPlan::of(message) else {
            others.push(message.clone());
            continue;
        };
        let results =
            rest.iter().take_while(|message| matches!(***message, Message::Tool(_))).count();
        let (results, after) = rest.split_at(results);
        rest = after;
        let records = records(&plan, calls, results);
        rounds.take(plan, records);
    }
    (rounds, others)
}

pub(crate) fn begins_turn(message: &SharedMessage) -> bool {
    matches!(&**message, Message::User(message) if !is_correction(message))
}

/// Returns the records of a plan's commands, in order.
fn records(
    plan: &RecordedPlan,
    message: &AssistantMessage,
    results: &[SharedMessage],
) -> Vec<ExecutionRecord> {
    let result = |index: usize| {
        let call = message.tool_calls.get(index)?;
        results.iter().find_map(|result| match &**result {
            Message::Tool(result) if result.tool_call_id == call.id => Some(result),
            _ => None,
        })
    };
    let by_executor =
        message.tool_calls.first().is_some_and(|call| &*call.name == EXECUTE_COMMANDS);
    if by_executor {
        let outcome = outcome(result(0));
        if let Ok(returned) = &outcome
            && let Ok(records) = serde_json::from_value(returned.clone())
        {
            return records;
        }
        let error =
            outcome.err().unwrap_or_else(|| "the executor's records cannot be read".to_owned());
        let records = plan.execution_commands.iter();
        return records.map(|command| ExecutionRecord::of(command, Err(error.clone()))).collect();
    }
    let commands = plan.execution_commands.iter().enumerate();
    commands.map(|(index, command)| ExecutionRecord::of(command, outcome(result(index)))).collect()
}

fn outcome(result: Option<&ToolResultMessage>) -> Result<Value, String> {
    let result = result.ok_or_else(|| "the call has no result".to_owned())?;
    let value = serde_json::from_str(&result.content);
    let value: Value = value.unwrap_or_else(|_| Value::String(result.content.clone()));
    if !result.failed {
        return Ok(value);
    }
    let error = value.get("error").and_then(Value::as_str);
    Err(error.unwrap_or(&result.content).to_owned())
}

#[cfg(test)]
mod tests;
