//! Planning without execution.

use helix_agents_core::agent::AgentDefinition;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::llm::{LlmRequest, NoSink};
use helix_agents_core::message::{Message, SharedMessage, UserMessage};
use tokio_util::sync::CancellationToken;

use crate::command::Command;
use crate::llm::PlanningLlm;
use crate::options::{PlanOptions, completion_tools};
use crate::plan::Problem;
use crate::planning_loop::PlanningLoop;
use crate::planning_round::{Outcome, PLAN_RETRIES, Round, no_usable_plan};
use crate::round::Turn;

impl PlanningLlm {
    /// Makes one plan for an input, with the agent's tools and the options of [`plan`](Self::plan),
    /// if it was called. Nothing is executed or recorded. An agent without tools has no commands,
    /// and no model is called.
    ///
    /// # Errors
    /// Returns the errors of the model or planner, and [`ErrorCode::MaxTokens`] or
    /// [`ErrorCode::ModelError`] if no plan can be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use helix_agents_core::agent::Agent;
    /// use helix_agents_planner::PlanningLlm;
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
    /// let commands = PlanningLlm::new(model).plan_once(agent.definition(), "Go!").await?;
    /// assert_eq!(commands.len(), 1);
    /// assert_eq!(commands[0].tool_name, "dice");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn plan_once(&self, agent: &AgentDefinition, input: &str) -> Result<Vec<Command>> {
        let own;
        let planning = match self.planning(agent.name()) {
            Some(planning) => planning,
            None => {
                let completion = completion_tools(agent);
                own = PlanningLoop { options: PlanOptions::default(), completion };
                &own
            }
        };
        let tools = planning.tools(agent.effective_tools().specs());
        if tools.is_empty() {
            return Ok(Vec::new());
        }
        let messages: [SharedMessage; 1] = [Message::User(UserMessage::new(input)).into()];
        let turn = Turn::of(&messages);
        let prompt = agent.system_message(&agent.initial_state().to_value())?;
        let (session, cancel) = (SessionId::from("plan"), CancellationToken::new());
        let request = LlmRequest::new(&session, agent.llm(), &prompt, &messages, &cancel)
            .agent(agent.name())
            .tools(agent.effective_tools());
        let round =
            Round { turn: &turn, request: &request, options: &planning.options, tools: &tools };
        let mut problem = None;
        for _ in 0..=PLAN_RETRIES {
            match round.plan(self.model(), &NoSink, problem).await?.outcome {
                Outcome::Decided(decision) => {
                    return Ok(planning.commands(&decision.execution_commands));
                }
                Outcome::Unusable(found) => problem = Some(found),
                Outcome::Failed { error, .. } => return Err(error.to_error(ErrorCode::ModelError)),
            }
        }
        Err(no_usable_plan(problem.unwrap_or(Problem::Malformed)).to_error(ErrorCode::ModelError))
    }
}
