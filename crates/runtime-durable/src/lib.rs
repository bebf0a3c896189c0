//! Carries out the runs of agents as DBOS workflows, whose steps are recorded in PostgreSQL.
//!
//! One workflow serves all agents. It is given a run's ids and carries the run out in parts, each a step;
//! what a step is about is in the session's log, and DBOS's tables hold ids. What the log says is what
//! happened: a step that is carried out again finds its effect on record. DBOS adds what the log has not:
//! a table of what is under way and of how it ended, workflows that can be listed and cancelled with
//! DBOS's own tools, and, for processes with a fixed name, runs that go on by themselves after a restart.
//!
//! No type of DBOS is part of this crate's API.

mod builder;
mod config;
mod engine;
mod failure;
mod guarantees;
mod history;
mod name;
mod runtime;
mod server;
mod step_site;
mod turns;
mod workflow;

pub use builder::DurableRuntimeBuilder;
pub use helix_agents_runtime::{SystemIds, TokioClock};
pub use runtime::DurableRuntime;
