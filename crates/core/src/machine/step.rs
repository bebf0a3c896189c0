//! Steps: the meaning of a model's answer, as pure functions of the recorded events.
//!
//! Runtimes drive a [`StepIterator`]. A custom loop can use the functions directly.

mod budget;
mod children;
mod companions;
mod correction;
mod crash_loop;
mod finish;
mod iterator;
mod messages;
mod next;
mod output;
mod pending_calls;
mod plan;
mod results;
mod state_repair;
mod stop;
mod synthetic_results;
mod tool_outcome;
mod turn_outcome;

pub use crate::agent::completion::{build_effective_tools, output_requirement};
pub use crate::llm::reply::{ParsedSubAgentCall, ParsedToolCall, StepResult, StopReason};
pub use crate::message::construct::{
    AssistantMessageParts, SubAgentResultInput, ToolResultInput, create_assistant_message,
    create_sub_agent_result_message, create_tool_result_message,
};
pub use children::{ChildSpec, child_outcome, child_refused, child_start_failed};
pub use companions::{CompanionMessage, CompanionOutcome, CompanionTask, Delivery, companion_task};
pub use correction::is_correction;
pub use finish::synthesize_finish_tool_result;
pub use iterator::{Action, CallTask, ChildTask, StepIterator};
pub use messages::{LlmMessages, build_messages_for_llm, find_unpaired_finish_call_id};
pub use output::repair_output;
pub use plan::{StatusUpdate, StepPlan, StepPlanOptions, plan_step_processing};
pub use results::{CallResult, ResultKind, UndeliveredResults};
pub use stop::{
    FinalStatus, StopCause, StopConfig, determine_final_status, is_error_stop_reason,
    is_recoverable_error_stop_reason, should_stop_execution, stop_cause,
};
pub(crate) use synthetic_results::heal;
pub use tool_outcome::{complete_record, finish_output, to_outcome};
pub use turn_outcome::{TurnOutcome, stop_reason_error, turn_outcome};

#[cfg(test)]
mod tests;
