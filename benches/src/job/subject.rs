//! The measured subjects and their stores.

use std::fmt;

use helix_agents::session::Durability;
use serde::{Deserialize, Serialize};

/// The program that makes the model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// A loop with reqwest and typed serde that serializes the whole history for each call.
    Bare,
    /// The local runtime on the memory store.
    Memory,
    /// The local runtime on SQLite, with one append per effect.
    SqlitePerEffect,
    /// The local runtime on SQLite, with one append per step.
    SqlitePerStep,
    /// `SqlitePerEffect` with `Synchronous::Normal`: appends do not wait for the disk.
    SqliteNormalPerEffect,
    /// `SqlitePerStep` with `Synchronous::Normal`.
    SqliteNormalPerStep,
    /// The local runtime on the PostgreSQL test server, with one append per effect.
    PostgresPerEffect,
    /// The local runtime on the PostgreSQL test server, with one append per step.
    PostgresPerStep,
    /// The local runtime on the Redis test server, with one append per effect.
    RedisPerEffect,
    /// The local runtime on the Redis test server, with one append per step.
    RedisPerStep,
    /// DBOS workflows with an empty step per effect of a run.
    BareDbos,
    /// Temporal workflows with an empty activity per effect of a run.
    BareTemporal,
    /// The durable runtime, with DBOS and the sessions on the PostgreSQL test server.
    DurablePostgres,
    /// The Temporal runtime on the Temporal test server, with the sessions on the PostgreSQL test
    /// server.
    TemporalPostgres,
}

/// The engine that executes runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// This process.
    Local,
    /// DBOS workflows.
    Durable,
    /// Temporal workflows.
    Temporal,
}

impl Subject {
    /// Returns the store of its sessions, if there is one.
    pub(crate) fn store(self) -> Option<Store> {
        Some(match self {
            Self::Bare | Self::BareDbos | Self::BareTemporal => return None,
            Self::Memory => Store::Memory,
            Self::SqlitePerEffect | Self::SqlitePerStep => Store::Sqlite,
            Self::SqliteNormalPerEffect | Self::SqliteNormalPerStep => Store::SqliteNormal,
            Self::PostgresPerEffect
            | Self::PostgresPerStep
            | Self::DurablePostgres
            | Self::TemporalPostgres => Store::Postgres,
            Self::RedisPerEffect | Self::RedisPerStep => Store::Redis,
        })
    }

    /// Returns the engine that executes its runs.
    pub(crate) fn engine(self) -> Engine {
        match self {
            Self::DurablePostgres => Engine::Durable,
            Self::TemporalPostgres => Engine::Temporal,
            _ => Engine::Local,
        }
    }

    /// Returns the durability of its appends.
    pub(crate) fn durability(self) -> Durability {
        match self {
            Self::SqlitePerStep
            | Self::SqliteNormalPerStep
            | Self::PostgresPerStep
            | Self::RedisPerStep => Durability::PerStep,
            _ => Durability::PerEffect,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Bare => "bare reqwest",
            Self::Memory => "memory",
            Self::SqlitePerEffect => "SQLite PerEffect",
            Self::SqlitePerStep => "SQLite PerStep",
            Self::SqliteNormalPerEffect => "SQLite normal PerEffect",
            Self::SqliteNormalPerStep => "SQLite normal PerStep",
            Self::PostgresPerEffect => "PostgreSQL PerEffect",
            Self::PostgresPerStep => "PostgreSQL PerStep",
            Self::RedisPerEffect => "Redis PerEffect",
            Self::RedisPerStep => "Redis PerStep",
            Self::BareDbos => "DBOS alone",
            Self::BareTemporal => "Temporal alone",
            Self::DurablePostgres => "durable runtime",
            Self::TemporalPostgres => "Temporal runtime",
        })
    }
}

/// A store and the failures that its acknowledged appends survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Store {
    /// No failure.
    Memory,
    /// A power loss: `Synchronous::Full`, the default.
    Sqlite,
    /// A killed process: `Synchronous::Normal`.
    SqliteNormal,
    /// A power loss: the test server has `fsync` and `synchronous_commit` on.
    Postgres,
    /// A killed process, but a server crash may lose the last appends: `synchronous_commit` off.
    PostgresAsync,
    /// A power loss: the test server has `appendfsync always`.
    Redis,
    /// A killed process, but a power loss may lose the last second: `appendfsync everysec`.
    RedisEverysec,
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Memory => "memory",
            Self::Sqlite => "SQLite",
            Self::SqliteNormal => "SQLite normal",
            Self::Postgres => "PostgreSQL",
            Self::PostgresAsync => "PostgreSQL async",
            Self::Redis => "Redis",
            Self::RedisEverysec => "Redis everysec",
        })
    }
}
