//! Types, contracts and the pure step machine of Helix Agents.
//!
//! A session is an append-only log of events. A store keeps the logs, and a runtime executes the
//! runs that write to them. This crate decides what happens next, with pure functions of the
//! recorded events; runtimes execute these decisions.
//!
//! The code has three layers: contracts, the state machine, and the journal, which reads and writes
//! logs. Public modules are organised by subject: `session` and `stream` re-export items from several
//! layers.

mod contracts;
mod journal;
mod machine;

pub mod session;
pub mod stream;

pub use contracts::{
    agent, budget, clock, embed, error, event, fault, finding, guarantee, hooks, id, json, llm,
    message, mutants, panics, schema, state, store, text, tool, trace, usage,
};
pub use journal::{executor, log_events, observer};
pub use machine::step;

pub(crate) use contracts::{retry_window, run_options, wire};

#[cfg(test)]
mod testing;
