//! Agent files: TOML descriptions of agents.
//!
//! An agent file is untrusted input: the amount of data read is bounded, the file has no access
//! outside its own folder, and every error is reported with its position.

mod build;
mod check;
mod document;
mod form;
mod places;
mod plan;
mod schema;

pub(crate) use document::AgentFile;
pub(crate) use form::{Period, ToolsForm};
pub(crate) use places::{Places, problems};
pub(crate) use schema::schema;

#[cfg(test)]
mod tests;
