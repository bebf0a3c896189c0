//! Carries out the runs of agents on Temporal.
//!
//! A run is a workflow of one type, whoever its agent is. Its history holds ids: which part of the run is next, never what was
//! said in it; that stands in the session's log, and the log decides. Each part is an activity that finds the run in the log,
//! does one thing and says what is next, so a part that is carried out twice finds its effect on record.
//!
//! [`TemporalRuntime`] begins runs, from any process. [`TemporalWorker`] carries them out, in as many processes as there are.

mod activities;
mod builder;
mod failure;
mod guarantees;
mod names;
mod nursery;
pub mod options;
mod runtime;
mod server;
mod step_site;
mod worker;
mod workflow;

pub use builder::TemporalRuntimeBuilder;
pub use helix_agents_runtime::{SystemIds, TokioClock};
pub use runtime::TemporalRuntime;
pub use worker::{TemporalWorker, TemporalWorkerBuilder};
