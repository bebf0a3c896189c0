//! Agent files: TOML descriptions of agents.
//!
//! An agent file is untrusted input: the amount of data read is bounded, the file has no access
//! outside its own folder, and every error is reported with its position.

mod build;
mod check;
mod config;
mod document;
mod plan;
mod schema;
mod source_map;

pub(crate) use config::{Period, ToolsConfig};
pub(crate) use document::AgentFile;
pub(crate) use schema::schema;
pub(crate) use source_map::{SourceMap, problems};

#[cfg(test)]
mod tests;
