//! One planning round: collects the inputs, calls the planner and reads its decision.

use std::sync::Arc;

use helix_agents_core::error::{Error, ErrorCode, ErrorRecord, Result};
use helix_agents_core::llm::{FailedAttempt, LlmAdapter, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::message::{Message, Thinking};
use helix_agents_core::step::{StepResult, StopReason, is_error_stop_reason, stop_reason_error};
use helix_agents_core::tool::ToolSpec;
use helix_agents_core::usage::Usage;
use serde_json::Value;

use crate::bounds;
use crate::decision::Decision;
use crate::options::PlanOptions;
use crate::parse::parse;
use crate::plan::{MAX_COMMANDS, Problem};
use crate::plan_call::stream_plan;
use crate::planner::PlanRequest;
use crate::prompt;
use crate::round::Turn;

/// The maximum number of retries for an unusable plan of one round.
pub(crate) const PLAN_RETRIES: usize = 2;

/// The result of a planning round.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) outcome: Outcome,
    pub(crate) usage: Usage,
    pub(crate) failed_attempts: Vec<FailedAttempt>,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) thinking: Option<Thinking>,
}

/// The outcome of a planner call.
#[derive(Debug)]
pub(crate) enum Outcome {
    Decided(Decision),
    Unusable(Problem),
    Failed { error: ErrorRecord, should_stop: bool },
}

impl Outcome {
    fn read(value: &Value) -> Self {
        let decision = Decision::normalise(value);
        if decision.execution_commands.len() > MAX_COMMANDS {
            return Self::Unusable(Problem::TooLong);
        }
        Self::Decided(decision)
    }

    fn parsed(text: &str, cut_off: bool) -> Self {
        parse(text, cut_off).map_or_else(Self::Unusable, |value| Self::read(&value))
    }

    fn failed(error: &Error) -> Self {
        Self::Failed { error: error.record(), should_stop: !error.is_retryable() }
    }
}

impl From<Outcome> for Planned {
    fn from(outcome: Outcome) -> Self {
        Self {
            outcome,
            usage: Usage::default(),
            failed_attempts: Vec::new(),
            model: None,
            thinking: None,
        }
    }
}

/// The inputs of a planning round.
#[derive(Debug)]
pub(crate) struct Round<'a> {
    pub(crate) turn: &'a Turn<'a>,
    pub(crate) request: &'a LlmRequest<'a>,
    pub(crate) options: &'a PlanOptions,
    pub(crate) tools: &'a [ToolSpec],
}

impl Round<'_> {
    /// Calls the planner.
    ///
    /// # Errors
    /// Returns the errors of the adapter.
    pub(crate) async fn plan(
        &self,
        model: &dyn LlmAdapter,
        sink: &dyn LlmSink,
        problem: Option<Problem>,
    ) -> Result<Planned> {
        let (turn, options) = (self.turn, self.options);
        let (user_input, user_extra_requirement) = prompt::asked(turn);
        let system_prompt = match &**self.request.prompt {
            Message::System { content } => content,
            _ => "",
        };
        let problem = problem.map(|problem| problem.to_string());
        let request = PlanRequest {
            agent: self.request.agent,
            user_input: &user_input,
            user_extra_requirement: &user_extra_requirement,
            system_prompt: &bounds::text(system_prompt, bounds::MAX_PROMPT_BYTES),
            history: &prompt::earlier(turn, options.max_result_bytes),
            available_tools: self.tools,
            done_plans: &turn.rounds.done_plans,
            last_round_records: &turn.rounds.last_round_records,
            round_index: turn.rounds.round_index,
            max_rounds: options.max_rounds,
            problem: problem.as_deref(),
            options,
            config: options.config.as_ref().unwrap_or(self.request.config),
            cancel: self.request.cancel,
        };
        match &options.planner {
            None => self.request_plan(model, sink, &request).await,
            Some(planner) => Ok(match planner.plan(request).await {
                Ok(reply) => {
                    Planned { usage: reply.usage, ..Outcome::read(&reply.decision).into() }
                }
                Err(error) => Outcome::failed(&error).into(),
            }),
        }
    }

    /// Calls the model to make the plan.
    async fn request_plan(
        &self,
        model: &dyn LlmAdapter,
        sink: &dyn LlmSink,
        request: &PlanRequest<'_>,
    ) -> Result<Planned> {
        let schema = request.config.native_output.then(prompt::schema).transpose()?;
        let (system, messages) = (prompt::system(request), [prompt::message(request)]);
        let session = self.request.session;
        let llm = LlmRequest::new(session, request.config, &system, &messages, request.cancel)
            .agent(request.agent)
            .output_schema(schema.as_ref())
            .max_retries(self.request.max_retries);
        let response = stream_plan(model, llm, sink).await?;
        Ok(response.map_or_else(|| Outcome::Decided(Decision::default()).into(), read))
    }
}

/// Reads a model's reply as a plan.
fn read(response: LlmResponse) -> Planned {
    let reason = response.result.stop_reason();
    let cut_off = reason == Some(StopReason::MaxTokens);
    let fatal = reason.filter(|reason| !cut_off && is_error_stop_reason(*reason));
    let mut reasoning = None;
    let outcome = match response.result {
        StepResult::Error { error, should_stop, .. } => Outcome::Failed { error, should_stop },
        _ if fatal.is_some() => {
            let reason = fatal.unwrap_or(StopReason::Unknown);
            let error = stop_reason_error(reason, response.raw_stop_reason.as_deref());
            Outcome::Failed { error, should_stop: true }
        }
        StepResult::Text { content, thinking, .. } => {
            reasoning = thinking;
            Outcome::parsed(&content, cut_off)
        }
        StepResult::StructuredOutput { output, thinking, .. } => {
            reasoning = thinking;
            Outcome::parsed(output.text(), cut_off)
        }
        // No tools were offered, so the calls are ignored and only a plan in the text counts.
        StepResult::ToolCalls { content: Some(content), thinking, .. } => {
            reasoning = thinking;
            Outcome::parsed(&content, cut_off)
        }
        StepResult::ToolCalls { content: None, .. } => Outcome::Unusable(Problem::Malformed),
    };
    Planned {
        outcome,
        usage: response.usage,
        failed_attempts: response.failed_attempts,
        model: response.model,
        thinking: reasoning,
    }
}

/// Returns the error of a round without a usable plan.
pub(crate) fn no_usable_plan(problem: Problem) -> ErrorRecord {
    let code = match problem {
        Problem::CutOff => ErrorCode::MaxTokens,
        Problem::Malformed | Problem::TooLong => ErrorCode::ModelError,
    };
    ErrorRecord::new(code, format!("no plan of the round can be used: {problem}"))
}
