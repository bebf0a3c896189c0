//! A runtime that executes agent runs on Temporal.
//!
//! Each run is a workflow of a single type that serves all agents. Its history contains ids, agent names, limits, and
//! the codes and messages of errors, but no content of conversations. The data is in the session's log, and the log is
//! authoritative. Each work item is an activity that loads the run from the log, performs one step and returns the next
//! item. An item that is executed again finds a recorded outcome in the log and does not execute the effect again.
//!
//! [`TemporalRuntime`] starts runs from any process. [`TemporalWorker`] executes them, in any number of processes.

mod activities;
mod builder;
mod failure;
mod guarantees;
mod names;
pub mod options;
mod payloads;
mod pending_children;
mod runtime;
mod server_client;
mod worker;
mod workflow;

pub use builder::TemporalRuntimeBuilder;
pub use helix_agents_runtime::{RuntimeBuilder, SystemIds, TokioClock};
pub use runtime::{TemporalEngine, TemporalRuntime};
pub use worker::{TemporalWorker, TemporalWorkerBuilder};
