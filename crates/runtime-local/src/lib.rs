//! Carries out the runs of agents in this process, on tokio. Durability is the store's.
//!
//! One run is one task: its model call, its tools and its appends are polled together, and nothing
//! hops between threads on the way. Many sessions spread over the runtime's threads.

mod builder;
mod children;
mod clock;
mod companions;
mod driver;
mod family;
mod feed;
mod guarantees;
mod handle;
mod lease;
mod live;
mod model;
mod parts;
mod runtime;
mod start;
mod step_site;
mod stop;
mod sweep;
mod tools;

pub use builder::LocalRuntimeBuilder;
pub use clock::{SystemIds, TokioClock};
pub use runtime::LocalRuntime;
