#![doc = include_str!("../README.md")]

pub use helix_agents_core::{
    agent, budget, clock, embed, error, event, executor, finding, guarantee, hooks, id, json, llm,
    log_events, message, observer, schema, session, state, step, store, stream, tool, trace, usage,
};

/// Agent files: TOML descriptions of agents.
#[cfg(feature = "agent-file")]
pub use helix_agents_agent_file as agent_file;

/// Client of an agent server.
#[cfg(feature = "client")]
pub use helix_agents_client as client;

/// The export of traces to OpenTelemetry receivers and Langfuse.
#[cfg(feature = "telemetry")]
pub use helix_agents_telemetry as telemetry;

/// Runs on a terminal: the live view of a stream, and output that untrusted text cannot imitate.
#[cfg(feature = "terminal")]
pub use helix_agents_terminal as terminal;

/// Model providers, and the registry that selects one for a model name.
#[cfg(feature = "llm")]
pub use helix_agents_llm as providers;

/// Planning: an agent plans tool calls before it answers.
#[cfg(feature = "planner")]
pub use helix_agents_planner as planner;

/// The runtime that runs agents as DBOS workflows, recorded in PostgreSQL.
#[cfg(feature = "runtime-durable")]
pub use helix_agents_runtime_durable as runtime_durable;

/// The runtime that runs agents in this process.
#[cfg(feature = "runtime-local")]
pub use helix_agents_runtime_local as runtime_local;

/// The runtime that runs agents as Temporal workflows.
#[cfg(feature = "runtime-temporal")]
pub use helix_agents_runtime_temporal as runtime_temporal;

/// Agents behind HTTP.
#[cfg(feature = "server")]
pub use helix_agents_server as server;

/// The store that keeps sessions and streams in memory.
#[cfg(feature = "store-memory")]
pub use helix_agents_store_memory as store_memory;

/// The store that keeps sessions and streams in PostgreSQL.
#[cfg(feature = "store-postgres")]
pub use helix_agents_store_postgres as store_postgres;

/// The store that keeps sessions and streams in Redis.
#[cfg(feature = "store-redis")]
pub use helix_agents_store_redis as store_redis;

/// The store that keeps sessions and streams in one SQLite file.
#[cfg(feature = "store-sqlite")]
pub use helix_agents_store_sqlite as store_sqlite;

/// Scripted models and gates, for tests.
#[cfg(feature = "test")]
pub use helix_agents_test as test;

/// Built-in tools: files, HTTP, commands, arithmetic, time and notes.
#[cfg(feature = "tools")]
pub use helix_agents_tools as tools;

#[cfg(feature = "macros")]
pub use helix_agents_macros::{tool, tools};

pub use any_store::AnyStore;
pub use error::{Error, Result};
pub use helix_agents_runtime::{RuntimeBuilder, Sessions, Sweeper};
pub use store_diagnosis::StoreDiagnosis;
pub use store_url::{StoreOptions, StoreUrl, open_store};

mod any_store;
pub mod prelude;
mod store_diagnosis;
mod store_url;

#[cfg(doctest)]
mod guide;
