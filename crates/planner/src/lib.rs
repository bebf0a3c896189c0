//! Plans of tool calls, in rounds, before an agent answers.
//!
//! [`PlanningLlm`] is a model adapter that wraps another one. A planning round is a normal step:
//! the plan is the step's message, its commands are the step's calls, and the runtime validates,
//! runs, records and resumes them as usual. The state of a loop, [`RoundState`], is folded from the
//! transcript and stored nowhere else.

mod bounds;
mod command;
mod decision;
mod describe;
mod executor;
mod inject;
mod llm;
mod once;
mod options;
mod parse;
mod plan;
mod plan_call;
mod planner;
mod planning_loop;
mod planning_round;
mod prompt;
mod record;
mod round;
mod watch;

pub use bounds::{MAX_HISTORY_BYTES, MAX_PROMPT_BYTES, MAX_RESULTS_BYTES};
pub use command::Command;
pub use decision::{Decision, NextAction};
pub use describe::describe_plan;
pub use executor::{CommandExecutor, CommandTool, EXECUTE_COMMANDS, Execution, ToolCaller};
pub use inject::EXTRA_INSTRUCTION;
pub use llm::{PlanningLlm, TOOL_LOGS_CHUNK};
pub use options::{DEFAULT_MAX_RESULT_BYTES, DEFAULT_MAX_ROUNDS, PlanOptions};
pub use plan::{MAX_COMMANDS, Stop};
pub use planner::{PlanReply, PlanRequest, Planner};
pub use planning_loop::PLAN_CHUNK;
pub use record::{ExecutionRecord, normalise_records, to_action_results};
pub use round::{RoundState, tool_logs};
