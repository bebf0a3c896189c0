//! Scripted models and gates, for tests of programs that use Helix Agents.
//!
//! [`ScriptedLlm`] is a model that returns prepared replies, so a test needs no key and no network.
//! [`RoutingScriptedLlm`] has a script for each agent, [`PlanningScript`] is for agents that plan. [`Gate`] lets a test
//! wait for a place in the code instead of sleeping.
//!
//! # Examples
//!
//! ```
//! use helix_agents_core::agent::Agent;
//! use helix_agents_core::executor::AgentExecutorExt as _;
//! use helix_agents_core::tool::{NoInput, Tool, ToolContext};
//! use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
//! use helix_agents_store_memory::MemoryStore;
//! use helix_agents_test::{Reply, ScriptedLlm};
//! use serde_json::json;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tool = Tool::function("dice", "Roll a die.", |_: NoInput, _: ToolContext| async { Ok(4) });
//! let agent = Agent::builder("gambler").system_prompt("Roll the die.").tool(tool).build()?;
//! let model = ScriptedLlm::new([Reply::tool_call("dice", json!({})), Reply::text("It is a 4.")]);
//! let runtime =
//!     LocalRuntime::builder().store(MemoryStore::new()).llm(model.clone()).build()?;
//! assert_eq!(runtime.run(&agent, "Go!").await?, "It is a 4.");
//! assert_eq!(model.seen()[1].messages.len(), 3);
//! # Ok(())
//! # }
//! ```
#![expect(clippy::panic, reason = "a test fails by panicking")]

mod gate;
mod part;
mod planning;
mod scripted;

pub use gate::{DEADLINE, Gate, within};
pub use part::Part;
pub use planning::PlanningScript;
pub use scripted::{Reply, RoutingScriptedLlm, ScriptedLlm, SeenRequest};
