//! A runtime that executes agent runs as DBOS workflows, whose steps are recorded in PostgreSQL.
//!
//! One workflow type serves all agents. Its input contains only the ids of a run. It executes the run as work items,
//! each in one step. The data of a step is in the session's log; DBOS's tables contain ids, agent names, limits, and
//! the codes and messages of errors, but no content of conversations. The log is authoritative: a step that is executed
//! again finds a recorded outcome there and does not execute the effect again. DBOS adds a table of running and
//! completed workflows, the ability to list and cancel workflows with DBOS's own tools, and, for processes with an
//! executor id, automatic continuation of runs after a restart.
//!
//! No DBOS type is part of this crate's API.

mod builder;
mod config;
mod database_check;
mod engine;
mod failure;
mod guarantees;
mod history;
mod limiter;
mod name;
mod run_loop;
mod runtime;
mod workflow;

pub use builder::DurableRuntimeBuilder;
pub use engine::DurableEngine;
pub use helix_agents_runtime::{RuntimeBuilder, SystemIds, TokioClock};
pub use runtime::DurableRuntime;
