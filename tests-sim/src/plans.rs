//! Agents that plan: a planner chooses their tool calls at random, in rounds before the model answers.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_conformance::rng::Rng;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_planner::{PlanOptions, PlanReply, PlanRequest, Planner, PlanningLlm};
use helix_agents_testkit::trees::{Family, ProcessLife};
use serde_json::{Value, json};

use crate::marks::{Mark, Reached};
use crate::parameters::Story;

/// The tools that plans call.
const TOOLS: [&str; 6] = ["work", "work", "fail", "wire", "pay", "stamp"];

/// The planner of one process. For the same request another process decides differently, as real models do.
#[derive(Debug)]
struct ByChance {
    seed: u64,
    life: ProcessLife,
    reached: Reached,
}

impl ByChance {
    fn decide(&self, rng: &mut Rng) -> Value {
        match rng.below(8) {
            0 => json!({ "next_action": "response" }),
            1 => json!("not a decision"),
            _ => {
                self.reached.note(Mark::Plan);
                let commands = (0..=rng.below(3)).map(|_| {
                    let tool = rng.pick(&TOOLS).copied().unwrap_or("work");
                    let word = format!("p{}", rng.below(1_000));
                    json!({ "tool_name": tool, "tool_kwargs": { "word": word } })
                });
                let commands: Vec<_> = commands.collect();
                json!({ "next_action": "execute", "execution_commands": commands })
            }
        }
    }
}

#[async_trait]
impl Planner for ByChance {
    async fn plan(&self, request: PlanRequest<'_>) -> Result<PlanReply> {
        let asked = (request.agent, request.user_input, request.round_index);
        let mut rng = Rng::of((self.seed, "plan", asked, self.life.number()));
        let took = async {
            self.life.tick().await;
            self.life.linger().await;
        };
        tokio::select! {
            biased;
            () = request.cancel.cancelled() => {
                Err(Error::new(ErrorCode::Cancelled, "the planner was cancelled"))
            }
            () = took => Ok(self.decide(&mut rng).into()),
        }
    }
}

/// Returns the model of a process. In some stories some of the agents plan.
pub(crate) fn with_plans(
    story: Story,
    model: Arc<dyn LlmAdapter>,
    family: &Family,
    life: &ProcessLife,
    reached: &Reached,
) -> Result<Arc<dyn LlmAdapter>> {
    let mut rng = story.rng("plans");
    if !rng.once_in(4) {
        return Ok(model);
    }
    let mut planning = PlanningLlm::around(model);
    for agent in family.agents() {
        if rng.once_in(2) {
            continue;
        }
        let (life, reached) = (life.clone(), reached.clone());
        let planner = ByChance { seed: story.seed, life, reached };
        let rounds = u32::try_from(1 + rng.below(3)).unwrap_or(1);
        let options = PlanOptions::default().max_rounds(rounds).planner(Some(Arc::new(planner)));
        planning = planning.plan(agent, options)?;
    }
    Ok(Arc::new(planning))
}
