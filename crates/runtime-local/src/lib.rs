//! Carries out the runs of agents in this process, on tokio. Durability is the store's.
//!
//! One run is one task: its model call, its tools and its appends are polled together, and nothing
//! hops between threads on the way. Many sessions spread over the runtime's threads.

mod builder;
mod guarantees;
mod runtime;
mod step_site;

pub use builder::LocalRuntimeBuilder;
pub use helix_agents_runtime::{SystemIds, TokioClock};
pub use runtime::LocalRuntime;
