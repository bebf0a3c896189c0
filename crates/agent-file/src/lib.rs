//! Agent files: TOML descriptions of agents.
//!
//! An agent file contains the prompt, limits, model settings, tools, planner and output schema of an agent.
//! [`AgentFile`] parses and validates one, [`AgentFile::build`] creates the agent, and [`schema`] is the JSON Schema of
//! agent files for editors.
//!
//! An agent file is untrusted input: the amount of data read is bounded, the file has no access outside its own
//! folder, and every error is reported with its position.
//!
//! # Examples
//!
//! ```
//! use helix_agents_agent_file::{AgentFile, BuildOptions};
//! use helix_agents_runtime_local::TokioClock;
//!
//! # fn main() -> Result<(), helix_agents_core::error::Error> {
//! let text = r#"
//!     name = "accountant"
//!     prompt = "Answer questions about sums."
//!     model = "openai:gpt-5-mini"
//!
//!     [limits]
//!     max_steps = 8
//!
//!     [tools.calculator]
//! "#;
//! let file = AgentFile::parse("accountant.toml", text)?;
//! let built = file.build(&BuildOptions::new(TokioClock::new()))?;
//! assert_eq!(built.agent().limits().max_steps, 8);
//! assert!(built.agent().tool("calculate").is_some());
//! # Ok(())
//! # }
//! ```
//!
//! An error has one line per problem:
//!
//! ```
//! use helix_agents_agent_file::{AgentFile, problems};
//!
//! let error = AgentFile::parse("a.toml", "name = 'a'\nprompt = 'b'\n[limits]\nmax_step = 8").unwrap_err();
//! assert_eq!(
//!     problems(&error).unwrap(),
//!     ["a.toml, line 4, column 1: unknown key `limits.max_step`; did you mean `max_steps`?"]
//! );
//! ```

mod build;
mod check;
mod clock;
mod config;
mod document;
mod plan;
mod recorded;
mod schema;
pub mod similar_name;
mod source_map;
mod tools;

pub use build::{BuildOptions, BuiltAgent};
pub use document::AgentFile;
pub use recorded::RecordedFile;
pub use schema::schema;
pub use source_map::problems;

#[cfg(test)]
mod tests;
