//! The planning loop of one agent: decides when it ends, and creates the step results of its plans.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::{Clock, Timestamp};
use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmRequest, LlmResponse, LlmSink, ToolChoice};
use helix_agents_core::message::Arguments;
use helix_agents_core::step::{ParsedToolCall, StepResult, StopReason};
use helix_agents_core::tool::ToolSpec;
use serde_json::{Value, json};

use crate::command::Command;
use crate::executor::EXECUTE_COMMANDS;
use crate::options::PlanOptions;
use crate::plan::{RecordedPlan, Stop};
use crate::planning_round::{Outcome, PLAN_RETRIES, Planned, no_usable_plan};
use crate::round::{RoundState, Turn};

/// The name of the `custom` chunk that shows a plan.
pub const PLAN_CHUNK: &str = "plan";

/// The planning loop of one agent.
#[derive(Debug)]
pub(crate) struct PlanningLoop {
    pub(crate) options: PlanOptions,
    /// The tools that complete the agent. They cannot be commands, and only they are offered for an
    /// answer.
    pub(crate) completion: Vec<Arc<str>>,
}

impl PlanningLoop {
    /// Returns the reason to answer now, if there is one. It is checked before a plan is requested,
    /// to avoid a useless plan.
    pub(crate) fn answer_due(
        &self,
        turn: &Turn<'_>,
        request: &LlmRequest<'_>,
        tools: bool,
    ) -> Option<Stop> {
        let rounds = &turn.rounds;
        if rounds.stopped.is_some() {
            return rounds.stopped;
        }
        if turn.is_answered() || matches!(request.tool_choice, ToolChoice::Tool(_)) {
            return Some(Stop::AnswerDue);
        }
        if !tools {
            return Some(Stop::Response);
        }
        // With a maximum of 0 rounds, the only plan that is made stops the loop itself.
        if rounds.round_index >= self.options.max_rounds.max(1) {
            return Some(Stop::MaxRounds);
        }
        let left = rounds.began.and_then(|began| self.left(Some(began)));
        left.is_some_and(|(left, _)| left.is_zero()).then_some(Stop::Timeout)
    }

    /// Returns the start time of the loop, if its time is limited.
    pub(crate) fn began(&self, rounds: &RoundState) -> Option<Timestamp> {
        let timeout = self.options.timeout.as_ref()?;
        Some(rounds.began.unwrap_or_else(|| timeout.clock.now()))
    }

    /// Returns the remaining time of the loop, and the clock that measures it.
    pub(crate) fn left(&self, began: Option<Timestamp>) -> Option<(Duration, &dyn Clock)> {
        let (timeout, began) = (self.options.timeout.as_ref()?, began?);
        let spent = timeout.clock.now().since(began);
        Some((timeout.limit.saturating_sub(spent), &*timeout.clock))
    }

    /// Returns the step result of a planning round.
    pub(crate) fn result(
        &self,
        rounds: &RoundState,
        began: Option<Timestamp>,
        planned: &Planned,
        sink: &dyn LlmSink,
    ) -> StepResult {
        let round = rounds.round_index;
        let plan = match &planned.outcome {
            Outcome::Failed { error, should_stop } => {
                return failed(error.clone(), *should_stop);
            }
            Outcome::Unusable(problem) if rounds.problems.len() >= PLAN_RETRIES => {
                return failed(no_usable_plan(*problem), true);
            }
            Outcome::Unusable(problem) => RecordedPlan::unusable(round, began, *problem),
            Outcome::Decided(decision) => {
                let commands = self.commands(&decision.execution_commands);
                let stop = if commands.is_empty() {
                    Some(Stop::Response)
                } else if self.options.max_rounds == 0 {
                    Some(Stop::MaxRounds)
                } else {
                    rounds.is_stuck_on(&commands).then_some(Stop::NoProgress)
                };
                match stop {
                    Some(stop) => RecordedPlan::stop(round, began, stop, commands),
                    None => RecordedPlan::execute(round, began, commands),
                }
            }
        };
        self.shown(&plan, sink)
    }

    /// Shows a plan in the stream and returns it as a step result.
    pub(crate) fn shown(&self, plan: &RecordedPlan, sink: &dyn LlmSink) -> StepResult {
        let content = plan.content();
        if plan.problem.is_none()
            && let Ok(data) = Json::parse(&content)
        {
            sink.custom(PLAN_CHUNK, &data);
        }
        let tool_calls = if plan.stopped.is_some() || plan.problem.is_some() {
            Vec::new()
        } else {
            self.calls(plan)
        };
        if tool_calls.is_empty() {
            let stop_reason = Some(StopReason::EndTurn);
            return StepResult::Text { content, thinking: None, should_stop: false, stop_reason };
        }
        StepResult::ToolCalls {
            content: Some(content),
            tool_calls,
            sub_agent_calls: Vec::new(),
            thinking: None,
            stop_reason: Some(StopReason::ToolUse),
        }
    }

    /// Removes calls of completion tools, which are left to the answer.
    pub(crate) fn commands(&self, commands: &[Command]) -> Vec<Command> {
        let completes =
            |command: &&Command| self.completion.iter().any(|name| **name == *command.tool_name);
        commands.iter().filter(|command| !completes(command)).cloned().collect()
    }

    fn calls(&self, plan: &RecordedPlan) -> Vec<ParsedToolCall> {
        let call = |index: usize, name: &str, arguments: Value| {
            let id = format!("plan_{}_{index}", plan.round_index);
            ParsedToolCall::new(id, name, Arguments::from(arguments))
        };
        let commands = &plan.execution_commands;
        if self.options.executor.is_some() {
            let round = plan.round_index;
            let arguments = json!({ "round_index": round, "execution_commands": commands });
            return vec![call(0, EXECUTE_COMMANDS, arguments)];
        }
        let commands = commands.iter().enumerate();
        commands
            .map(|(index, command)| {
                call(index, &command.tool_name, command.tool_kwargs.clone().into())
            })
            .collect()
    }

    /// Returns the tools that a plan may use.
    pub(crate) fn tools(&self, offered: &[ToolSpec]) -> Vec<ToolSpec> {
        match &self.options.executor {
            Some(executor) => executor.specs().to_vec(),
            None => {
                let offered = offered.iter().filter(|spec| !self.completion.contains(&spec.name));
                offered.cloned().collect()
            }
        }
    }

    /// Removes calls of tools that were not offered for an answer. Only completion tools are
    /// offered for it. The layout of a changed reply is dropped, because it refers to all calls.
    pub(crate) fn keep_offered(&self, response: &mut LlmResponse) {
        let StepResult::ToolCalls { tool_calls, sub_agent_calls, .. } = &mut response.result else {
            return;
        };
        let before = tool_calls.len() + sub_agent_calls.len();
        tool_calls.retain(|call| self.completion.contains(&call.name));
        sub_agent_calls.clear();
        let left = tool_calls.len();
        if left < before {
            response.layout = None;
        }
        if left == 0 {
            let message = "the model called tools that its answer was not offered";
            response.result = failed(ErrorRecord::new(ErrorCode::ModelError, message), false);
        }
    }
}

fn failed(error: ErrorRecord, should_stop: bool) -> StepResult {
    StepResult::Error { error, should_stop, stop_reason: Some(StopReason::Error) }
}
