//! Contracts: shared types, and the traits that models, stores, streams, tools and hooks implement. This layer does not
//! depend on the state machine or the journal.

pub mod agent;
pub mod budget;
pub mod clock;
pub mod embed;
pub mod error;
pub mod event;
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
pub(crate) mod request_options;
pub(crate) mod run_options;
pub mod schema;
pub mod state;
pub mod store;
pub(crate) mod stream;
pub mod text;
pub mod tool;
pub mod trace;
pub mod usage;

pub(crate) mod retry_window;
pub(crate) mod wire;
