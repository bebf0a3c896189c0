//! The definition of the agent.

use helix_agents::agent::Agent;
use helix_agents::error::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::environment::ToolEnvironment;
use crate::tools::{list_bodies, look_up, rank};

/// The agent's name.
pub const NAME: &str = "researcher";

/// The question of the demo.
pub const QUESTION: &str = "Which moons of the Solar System are larger than the planet Mercury, and is any of them heavier?";

const PROMPT: &str = "\
You answer questions about the Solar System. You know nothing by heart: gather every fact with the \
tools first, several at once where you can. When the facts are together, hand in the report: the \
question, the answer in one or two sentences, and the facts it rests on, each with the body it is \
about.";

/// The maximum number of steps. Small models may call tools endlessly; the last step is reserved for the
/// report.
const MAX_STEPS: u32 = 10;

/// The output of the agent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The question that was asked.
    #[schemars(length(min = 3, max = 300))]
    pub question: String,
    /// The answer, in one or two sentences.
    #[schemars(length(min = 3, max = 1000))]
    pub answer: String,
    /// The facts that the answer rests on.
    #[schemars(length(min = 1, max = 8))]
    pub facts: Vec<Fact>,
}

/// One fact of a report.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct Fact {
    /// The body that it is about.
    #[schemars(length(min = 2, max = 40))]
    pub body: String,
    /// The fact, in one sentence.
    #[schemars(length(min = 3, max = 300))]
    pub statement: String,
}

/// Creates the agent.
///
/// # Errors
/// Returns an error if the definition is invalid, which is a bug.
pub fn researcher(model: &str, environment: &ToolEnvironment) -> Result<Agent<Report>> {
    Agent::builder(NAME)
        .description("Answers questions about the Solar System from a table of its bodies.")
        .system_prompt(PROMPT)
        .tool(environment.tool(look_up))
        .tool(environment.tool(rank))
        .tool(environment.tool(list_bodies))
        .output::<Report>()
        .model(model)
        .max_steps(MAX_STEPS)
        .build()
}
