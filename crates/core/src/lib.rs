//! Types, contracts and the pure step machine of Helix Agents.
//!
//! A session is a log, a step is an append, a runtime drives runs and a store keeps logs. Pure
//! functions of the recorded events in this crate decide what happens next. Runtimes execute these
//! decisions.

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
