//! A runtime that executes agent runs in this process, on tokio. Recorded events are as durable as the store.
//!
//! Each run is one task: its model call, its tools and its appends are polled together without moving
//! between tasks. Runs of different sessions are distributed over the threads of the tokio runtime.

mod builder;
mod guarantees;
mod run_loop;
mod runtime;

pub use builder::LocalRuntimeBuilder;
pub use helix_agents_runtime::{RuntimeBuilder, SystemIds, TokioClock};
pub use runtime::{LocalEngine, LocalRuntime};
