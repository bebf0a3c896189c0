//! The adapter: the model call that a step makes, and its result for the runtime.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::agent::AgentDefinition;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmAdapter, LlmConfig, LlmRequest, LlmResponse, LlmSink};
use helix_agents_core::step::StepResult;
use serde_json::json;

use crate::inject;
use crate::options::{PlanOptions, completion_tools};
use crate::plan::{RecordedPlan, Stop};
use crate::planning_loop::PlanningLoop;
use crate::planning_round::{Outcome, Planned, Round};
use crate::round::Turn;

/// The name of the `custom` chunk with the raw records, which is sent before the answer that uses
/// them.
pub const TOOL_LOGS_CHUNK: &str = "tool_logs";

/// A model that plans: before an agent answers, its tools are called in planned rounds.
///
/// It is an adapter around another model and needs no support from the runtime. Each planning round
/// is a step: its model call returns a plan, which is recorded as the step's message, and its
/// commands are the step's tool calls. The recorded steps are the state of the loop. The last step
/// is the answer. Its model call gets the results of the loop, but not the loop's messages.
///
/// # Examples
///
/// ```
/// use helix_agents_core::agent::Agent;
/// use helix_agents_core::executor::AgentExecutorExt as _;
/// use helix_agents_planner::{PlanOptions, PlanningLlm};
/// use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
/// use helix_agents_store_memory::MemoryStore;
/// # use helix_agents_core::tool::{NoInput, Tool, ToolContext};
/// # use helix_agents_test::{PlanningScript, Reply, ScriptedLlm};
///
/// # #[tokio::main]
/// # async fn main() -> helix_agents_core::error::Result<()> {
/// # let dice = Tool::function("dice", "Roll a die.", |_: NoInput, _: ToolContext| async {
/// #     Ok(4)
/// # });
/// # let plan = r#"{"execution_commands": [{"tool_name": "dice", "purpose": "Roll."}]}"#;
/// # let answers = ScriptedLlm::new([Reply::text("It is a 4.")]);
/// # let model = PlanningScript::new([Reply::text(plan)], answers);
/// let agent = Agent::builder("gambler").system_prompt("Roll the die.").tool(dice).build()?;
/// let llm = PlanningLlm::new(model).plan(agent.definition(), PlanOptions::default().max_rounds(1))?;
/// let runtime = LocalRuntime::builder().store(MemoryStore::new()).llm(llm).build()?;
/// assert_eq!(runtime.run(&agent, "Go!").await?, "It is a 4.");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct PlanningLlm {
    model: Arc<dyn LlmAdapter>,
    planning: BTreeMap<Arc<str>, PlanningLoop>,
}

impl PlanningLlm {
    /// Creates the adapter around a model. Requests of agents without a plan are passed on
    /// unchanged.
    pub fn new(model: impl LlmAdapter) -> Self {
        Self::around(Arc::new(model))
    }

    /// Creates the adapter around a shared model.
    #[must_use]
    pub fn around(model: Arc<dyn LlmAdapter>) -> Self {
        Self { model, planning: BTreeMap::new() }
    }

    /// Enables planning for an agent. It applies to every agent with this name.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the options are not valid for this agent or planning
    /// is already enabled for it, and [`ErrorCode::ModelUnknown`] if no provider serves the
    /// planner's model.
    pub fn plan(mut self, agent: &AgentDefinition, options: PlanOptions) -> Result<Self> {
        options.check(agent)?;
        if let Some(config) = &options.config {
            self.model.check(config)?;
        }
        let planning = PlanningLoop { options, completion: completion_tools(agent) };
        if self.planning.insert(Arc::clone(agent.name()), planning).is_some() {
            let error =
                Error::new(ErrorCode::ConfigInvalid, "planning is already enabled for the agent");
            return Err(error.with_context("agent", agent.name()));
        }
        Ok(self)
    }

    pub(crate) fn model(&self) -> &dyn LlmAdapter {
        &*self.model
    }

    pub(crate) fn planning(&self, agent: &str) -> Option<&PlanningLoop> {
        self.planning.get(agent)
    }

    async fn plan_step(
        &self,
        planning: &PlanningLoop,
        round: &Round<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let rounds = &round.turn.rounds;
        let began = planning.began(rounds);
        let problem = rounds.problems.last().copied();
        let decision = round.plan(&*self.model, sink, problem);
        let planned = match planning.left(began) {
            None => Some(decision.await?),
            Some((left, clock)) => tokio::select! {
                biased;
                planned = decision => Some(planned?),
                () = clock.sleep(left) => None,
            },
        };
        let Some(planned) = planned else {
            let plan = RecordedPlan::stop(rounds.round_index, began, Stop::Timeout, Vec::new());
            return Ok(respond(planning.shown(&plan, sink), Planned::nothing()));
        };
        let result = planning.result(rounds, began, &planned, sink);
        Ok(respond(result, planned))
    }

    async fn answer(
        &self,
        planning: &PlanningLoop,
        turn: &Turn<'_>,
        mut request: LlmRequest<'_>,
        sink: &dyn LlmSink,
        stop: Stop,
    ) -> Result<LlmResponse> {
        if !turn.rounds.done_plans.is_empty() && !turn.is_answered() {
            let logs = json!({ "tool_logs": turn.rounds.done_plans, "stopped": stop });
            sink.custom(TOOL_LOGS_CHUNK, &Json::from(logs));
        }
        let messages = inject::conversation(turn, planning.options.max_result_bytes);
        let tools = inject::completion_tools(request.tools, &planning.completion);
        request.messages = &messages;
        request.tools = &tools;
        let mut response = self.model.generate_step(request, sink).await?;
        planning.keep_offered(&mut response);
        Ok(response)
    }
}

impl Planned {
    /// Returns the result of a plan that was dropped. Its token usage is unknown.
    fn nothing() -> Self {
        Outcome::Decided(crate::Decision::default()).into()
    }
}

fn respond(mut result: StepResult, planned: Planned) -> LlmResponse {
    if let StepResult::Text { thinking, .. } | StepResult::ToolCalls { thinking, .. } = &mut result
    {
        *thinking = planned.thinking;
    }
    let mut response = LlmResponse::new(result, planned.usage);
    response.failed_attempts = planned.failed_attempts;
    response.model = planned.model;
    response
}

#[async_trait]
impl LlmAdapter for PlanningLlm {
    async fn generate_step(
        &self,
        request: LlmRequest<'_>,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse> {
        let planning = self.planning(request.agent).filter(|planning| planning.options.enabled);
        let Some(planning) = planning else {
            return self.model.generate_step(request, sink).await;
        };
        let turn = Turn::of(request.messages);
        let tools = planning.tools(request.tools.specs());
        if let Some(stop) = planning.answer_due(&turn, &request, !tools.is_empty()) {
            return self.answer(planning, &turn, request, sink, stop).await;
        }
        let round =
            Round { turn: &turn, request: &request, options: &planning.options, tools: &tools };
        self.plan_step(planning, &round, sink).await
    }

    fn check(&self, config: &LlmConfig) -> Result<()> {
        self.model.check(config)
    }
}
