//! Vocabulary, contracts and the pure step machine of Helix Agents.
//!
//! A session is a log; a step is an append; a runtime is a driver; a store is a place that keeps
//! logs. What happens next is decided here, by functions of the recorded events; runtimes carry it
//! out.

pub mod agent;
pub mod budget;
pub mod clock;
pub mod error;
pub mod event;
pub mod executor;
pub mod fault;
pub mod guarantee;
pub mod hooks;
pub mod id;
pub mod json;
pub mod llm;
pub mod message;
pub mod mutants;
pub mod panics;
pub mod schema;
pub mod session;
pub mod state;
pub mod step;
pub mod store;
pub mod stream;
pub mod text;
pub mod tool;
pub mod usage;

mod patience;
mod wire;

#[cfg(test)]
mod testing;
