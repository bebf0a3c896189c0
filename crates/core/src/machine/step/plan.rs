//! The plan of a step: what its result requires.

use super::output::repair_output;
use super::stop::FinalStatus;
use crate::json::Json;
use crate::llm::reply::{ParsedSubAgentCall, ParsedToolCall, StepResult, StopReason};
use crate::message::Arguments;
use crate::message::construct::AssistantMessageParts;
use crate::schema::Schema;
use crate::tool::FINISH_TOOL;

/// The inputs of a plan besides the result.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct StepPlanOptions<'a> {
    /// The schema of the agent's output, if it has an output type.
    pub output_schema: Option<&'a Schema>,
}

impl<'a> StepPlanOptions<'a> {
    /// Creates the options for an agent with this output schema, if it has an output type.
    #[must_use]
    pub const fn new(output_schema: Option<&'a Schema>) -> Self {
        Self { output_schema }
    }
}

/// The work that a step's result requires.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StepPlan {
    /// The parts of the assistant message; `None` for a structured output and for an error.
    pub assistant_message_plan: Option<AssistantMessageParts>,
    /// The tool calls to run, never `__finish__`.
    pub tool_calls_to_run: Vec<ParsedToolCall>,
    /// The sub-agent calls to start.
    pub pending_sub_agent_calls: Vec<ParsedSubAgentCall>,
    /// The status change that this step causes.
    pub status_update: Option<StatusUpdate>,
    /// Whether the turn ends with this step.
    pub is_terminal: bool,
    /// The output, if the step returned a valid one.
    pub output: Option<Json>,
    /// The reason why the model stopped.
    pub stop_reason: Option<StopReason>,
    /// The schema violations of the output, if the step returned an invalid one. The plan is not
    /// terminal then.
    pub violations: Vec<String>,
}

/// The status change that a step causes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StatusUpdate {
    /// The new status of the turn.
    pub status: FinalStatus,
    /// The output of a completed turn.
    pub output: Option<Json>,
    /// The error message of a failed turn.
    pub error: Option<String>,
}

/// Computes the plan of a step from its result.
///
/// A valid `__finish__` ends the turn, and no other call of the reply runs. The code that records
/// the step adds results for those calls. A `__finish__` that was cut off or whose output is
/// invalid is not terminal, and the other calls are pending as usual.
#[must_use]
pub fn plan_step_processing(step: &StepResult, options: &StepPlanOptions<'_>) -> StepPlan {
    let mut plan = StepPlan {
        assistant_message_plan: None,
        tool_calls_to_run: Vec::new(),
        pending_sub_agent_calls: Vec::new(),
        status_update: None,
        is_terminal: false,
        output: None,
        stop_reason: step.stop_reason(),
        violations: Vec::new(),
    };
    match step {
        StepResult::Text { content, thinking, .. } => {
            plan.assistant_message_plan = Some(AssistantMessageParts {
                content: Some(content.clone()),
                thinking: thinking.clone(),
                ..AssistantMessageParts::default()
            });
        }
        StepResult::ToolCalls { content, tool_calls, sub_agent_calls, thinking, .. } => {
            plan.assistant_message_plan = Some(AssistantMessageParts {
                content: content.clone(),
                tool_calls: tool_calls.clone(),
                sub_agent_calls: sub_agent_calls.clone(),
                thinking: thinking.clone(),
            });
            plan_calls(&mut plan, tool_calls, sub_agent_calls, options);
        }
        StepResult::StructuredOutput { output, .. } => {
            plan.take_output(output, options);
        }
        StepResult::Error { error, should_stop, .. } => {
            plan.is_terminal = *should_stop;
            plan.status_update = should_stop.then(|| StatusUpdate {
                status: FinalStatus::Failed,
                output: None,
                error: Some(error.message.clone()),
            });
        }
    }
    plan
}

fn plan_calls(
    plan: &mut StepPlan,
    tool_calls: &[ParsedToolCall],
    sub_agent_calls: &[ParsedSubAgentCall],
    options: &StepPlanOptions<'_>,
) {
    if let Some(finish) = tool_calls.iter().find(|call| *call.name == *FINISH_TOOL) {
        match (&finish.arguments, plan.stop_reason) {
            (Arguments::Json(output), reason) if reason != Some(StopReason::MaxTokens) => {
                plan.take_output(output, options);
            }
            (arguments, _) => plan.violations.push(match arguments.unreadable() {
                Some(problem) => format!("it cannot be read: {problem}"),
                None => "the call was cut off or is not valid JSON".to_owned(),
            }),
        }
    }
    if !plan.is_terminal {
        let others = tool_calls.iter().filter(|call| *call.name != *FINISH_TOOL);
        plan.tool_calls_to_run = others.cloned().collect();
        plan.pending_sub_agent_calls = sub_agent_calls.to_vec();
    }
}

impl StepPlan {
    fn take_output(&mut self, output: &Json, options: &StepPlanOptions<'_>) {
        let fitting = match options.output_schema {
            None => Ok(output.clone()),
            Some(schema) => {
                let value = output.to_value();
                match repair_output(&value, schema) {
                    Ok(fitting) if fitting == value => Ok(output.clone()),
                    Ok(repaired) => Ok(Json::from(repaired)),
                    Err(violations) => Err(violations),
                }
            }
        };
        match fitting {
            Ok(output) => {
                self.is_terminal = true;
                self.output = Some(output.clone());
                self.status_update = Some(StatusUpdate {
                    status: FinalStatus::Completed,
                    output: Some(output),
                    error: None,
                });
            }
            Err(violations) => self.violations = violations,
        }
    }
}
