//! Agent files: an agent as a person describes it, in TOML.
//!
//! Whoever wrote the file may be a stranger, so what is read is bounded, the file sees nothing
//! beyond its own folder, and every mistake is told with its place.

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
