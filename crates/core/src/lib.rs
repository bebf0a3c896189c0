//! Types, contracts and the pure step machine of Helix Agents.
//!
//! A session is an append-only log of events. A store keeps the logs, and a runtime executes the
//! runs that write to them. This crate decides what happens next, with pure functions of the
//! recorded events; runtimes execute these decisions.

pub mod agent;
pub mod budget;
pub mod clock;
pub mod error;
pub mod event;
pub mod executor;
pub mod fault;
pub mod finding;
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

mod retry_window;
mod wire;

#[cfg(test)]
mod testing;
