//! The agent of `helix demo`: it looks up facts in a table of the Solar System and submits a report.
//!
//! [`researcher`] creates the agent, and [`script`] creates a scripted model, for machines without a model
//! server. The tools that the script calls are real.

mod agent;
mod bodies;
mod environment;
mod script;
mod tools;

pub use agent::{Fact, NAME, QUESTION, Report, researcher};
pub use environment::ToolEnvironment;
pub use script::script;
