//! The adapter: which call a step makes, and what it means to the runtime.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::agent::AgentDefinition;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, ErrorRecord, Result};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink, ToolChoice};
use helix_agents_core::message::Arguments;
use helix_agents_core::step::{ParsedToolCall, StepResult, StopReason};
use helix_agents_core::tool::ToolSpec;
use serde_json::json;

use crate::command::Command;
use crate::executor::EXECUTE_COMMANDS;
use crate::inject;
use crate::options::{PlanOptions, completion_tools};
use crate::plan::{RecordedPlan, Stop};
use crate::planning::{Outcome, PLAN_RETRIES, Planned, Round, gave_up};
use crate::round::{RoundState, Turn};

/// The name of the `custom` chunk that shows a plan.
pub const PLAN_CHUNK: &str = "plan";

/// The name of the `custom` chunk that has the raw records, before the answer that uses them.
pub const TOOL_LOGS_CHUNK: &str = "tool_logs";

/// A model that plans: before an agent answers, its tools are called in planned rounds.
///
/// It is an adapter around another one, and needs nothing of a runtime. Each planning round is a
/// step: its model call brings a plan, which is recorded as the step's message, and whose commands
/// are the step's tool calls. What was recorded is the state of the loop. The last step is the
/// answer, which is asked for without the loop's messages and with what they brought.
#[derive(Debug)]
pub struct PlanningLlm {
    model: Arc<dyn LlmAdapter>,
    plans: BTreeMap<Arc<str>, Plans>,
}

/// The loop of one agent.
#[derive(Debug)]
pub(crate) struct Plans {
    pub(crate) options: PlanOptions,
    /// The tools by which the agent completes: no commands, and all that an answer is offered.
    pub(crate) completion: Vec<Arc<str>>,
}

impl PlanningLlm {
    /// Around a model. Requests of agents without a plan are handed through.
    pub fn new(model: impl LlmAdapter) -> Self {
        Self::around(Arc::new(model))
    }

    /// Around a model that is shared already.
    #[must_use]
    pub fn around(model: Arc<dyn LlmAdapter>) -> Self {
        Self { model, plans: BTreeMap::new() }
    }

    /// Lets an agent plan; others of that name are meant too.
    ///
    /// # Errors
    /// [`ErrorCode::ConfigInvalid`] if the options cannot work for this agent, or it plans already;
    /// [`ErrorCode::ModelUnknown`] if the planner's model is not served.
    pub fn plan(mut self, agent: &AgentDefinition, options: PlanOptions) -> Result<Self> {
        options.check(agent)?;
        if let Some(config) = &options.config {
            self.model.check(config)?;
        }
        let plans = Plans { options, completion: completion_tools(agent) };
        if self.plans.insert(Arc::clone(agent.name()), plans).is_some() {
            let error = Error::new(ErrorCode::ConfigInvalid, "the agent plans already");
            return Err(error.with_context("agent", agent.name()));
        }
        Ok(self)
    }

    pub(crate) fn model(&self) -> &dyn LlmAdapter {
        &*self.model
    }

    pub(crate) fn plans(&self, agent: &str) -> Option<&Plans> {
        self.plans.get(agent)
    }

    async fn plan_step(
        &self,
        plans: &Plans,
        round: &Round<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let rounds = &round.turn.rounds;
        let began = plans.began(rounds);
        let problem = rounds.problems.last().copied();
        let planning = round.plan(&*self.model, sink, problem);
        let planned = match plans.left(began) {
            None => Some(planning.await?),
            Some((left, clock)) => tokio::select! {
                biased;
                planned = planning => Some(planned?),
                () = clock.sleep(left) => None,
            },
        };
        let Some(planned) = planned else {
            let plan = RecordedPlan::stop(rounds.round_index, began, Stop::Timeout, Vec::new());
            return Ok(respond(plans.told(&plan, sink), Planned::nothing()));
        };
        let result = plans.result(rounds, began, &planned, sink);
        Ok(respond(result, planned))
    }

    async fn answer(
        &self,
        plans: &Plans,
        turn: &Turn<'_>,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
        stop: Stop,
    ) -> Result<LlmResponse> {
        if !turn.rounds.done_plans.is_empty() && !turn.is_answered() {
            let logs = json!({ "tool_logs": turn.rounds.done_plans, "stopped": stop });
            sink.custom(TOOL_LOGS_CHUNK, &Json::from(logs));
        }
        let messages = inject::conversation(turn, plans.options.max_result_bytes);
        let tools = inject::completion_tools(request.tools, &plans.completion);
        let request = LlmRequest { messages: &messages, tools: &tools, ..request };
        let mut response = self.model.generate_step(request, sink).await?;
        plans.keep_offered(&mut response.result);
        Ok(response)
    }
}

impl Plans {
    /// Why it is time to answer, if it is: looked at before a plan is asked for, so that none is
    /// asked for in vain.
    fn answer_due(&self, turn: &Turn<'_>, request: &LlmRequest<'_>, tools: bool) -> Option<Stop> {
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
        // With no rounds at all the one plan that is made says itself that it is the last.
        if rounds.round_index >= self.options.max_rounds.max(1) {
            return Some(Stop::MaxRounds);
        }
        let left = rounds.began.and_then(|began| self.left(Some(began)));
        left.is_some_and(|(left, _)| left.is_zero()).then_some(Stop::Timeout)
    }

    /// When the loop began, if its time is limited.
    fn began(&self, rounds: &RoundState) -> Option<Timestamp> {
        let timeout = self.options.timeout.as_ref()?;
        Some(rounds.began.unwrap_or_else(|| timeout.clock.now()))
    }

    /// What is left of the loop's time, and the clock that says so.
    fn left(
        &self,
        began: Option<Timestamp>,
    ) -> Option<(Duration, &dyn helix_agents_core::clock::Clock)> {
        let (timeout, began) = (self.options.timeout.as_ref()?, began?);
        let spent = timeout.clock.now().since(began);
        Some((timeout.limit.saturating_sub(spent), &*timeout.clock))
    }

    /// What a planning round means to the runtime.
    fn result(
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
                return failed(gave_up(*problem), true);
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
        self.told(&plan, sink)
    }

    /// A plan as the step's result, shown to people.
    fn told(&self, plan: &RecordedPlan, sink: &dyn LlmSink) -> StepResult {
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

    /// Completing is no command: it is what the answer does.
    pub(crate) fn commands(&self, commands: &[Command]) -> Vec<Command> {
        let completes =
            |command: &&Command| self.completion.iter().any(|name| **name == *command.tool_name);
        commands.iter().filter(|command| !completes(command)).cloned().collect()
    }

    fn calls(&self, plan: &RecordedPlan) -> Vec<ParsedToolCall> {
        let call = |index: usize, name: &str, arguments: serde_json::Value| {
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
            .map(|(index, it)| call(index, &it.tool_name, it.tool_kwargs.clone().into()))
            .collect()
    }

    /// The tools that a plan may name.
    pub(crate) fn tools(&self, offered: &[ToolSpec]) -> Vec<ToolSpec> {
        match &self.options.executor {
            Some(executor) => executor.specs().to_vec(),
            None => {
                let offered = offered.iter().filter(|spec| !self.completion.contains(&spec.name));
                offered.cloned().collect()
            }
        }
    }

    /// An answer was offered the completing tools only, so calls of others are no part of it.
    fn keep_offered(&self, result: &mut StepResult) {
        let StepResult::ToolCalls { tool_calls, sub_agent_calls, .. } = result else { return };
        tool_calls.retain(|call| self.completion.contains(&call.name));
        sub_agent_calls.clear();
        if tool_calls.is_empty() {
            let message = "the model called tools that its answer was not offered";
            *result = failed(ErrorRecord::new(ErrorCode::ModelError, message), false);
        }
    }
}

impl Planned {
    /// A plan that was dropped. What it took is not known.
    fn nothing() -> Self {
        Outcome::Decided(crate::Decision::default()).into()
    }
}

fn respond(mut result: StepResult, planned: Planned) -> LlmResponse {
    if let StepResult::Text { thinking, .. } | StepResult::ToolCalls { thinking, .. } = &mut result
    {
        *thinking = planned.thinking;
    }
    let (usage, model) = (planned.usage, planned.model);
    LlmResponse { result, usage, model, raw_stop_reason: None }
}

fn failed(error: ErrorRecord, should_stop: bool) -> StepResult {
    StepResult::Error { error, should_stop, stop_reason: Some(StopReason::Error) }
}

#[async_trait]
impl LlmAdapter for PlanningLlm {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let plans = self.plans(request.agent).filter(|plans| plans.options.enabled);
        let Some(plans) = plans else {
            return self.model.generate_step(request, sink).await;
        };
        let turn = Turn::of(request.messages);
        let tools = plans.tools(request.tools.specs());
        if let Some(stop) = plans.answer_due(&turn, &request, !tools.is_empty()) {
            return self.answer(plans, &turn, request, sink, stop).await;
        }
        let round =
            Round { turn: &turn, request: &request, options: &plans.options, tools: &tools };
        self.plan_step(plans, &round, sink).await
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        self.model.check(config)
    }
}
