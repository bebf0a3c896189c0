//! The agent of `helix demo`: it looks up facts in a table of the Solar System and submits a report.

mod agent;
mod bodies;
mod environment;
pub(crate) mod script;
mod settings;
mod tools;

pub(crate) use agent::{NAME, QUESTION, Report, researcher};
pub(crate) use environment::ToolEnvironment;
pub(crate) use settings::DemoSettings;
