//! Who is measured, and on which store.

use std::fmt;

use helix_agents::session::Durability;
use serde::{Deserialize, Serialize};

/// Who makes the model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// A loop over reqwest and typed serde, which writes the whole history for each call.
    Bare,
    /// The local runtime on the memory store.
    Memory,
    /// The local runtime on SQLite, facts appended as they happen.
    SqlitePerEffect,
    /// The local runtime on SQLite, facts appended once per step.
    SqlitePerStep,
    /// `SqlitePerEffect`, with `Synchronous::Normal`: no append waits for the disk.
    SqliteNormalPerEffect,
    /// `SqlitePerStep`, likewise.
    SqliteNormalPerStep,
    /// The local runtime on the PostgreSQL server for tests, facts appended as they happen.
    PostgresPerEffect,
    /// The same, facts appended once per step.
    PostgresPerStep,
    /// The local runtime on the Redis server for tests, facts appended as they happen.
    RedisPerEffect,
    /// The same, facts appended once per step.
    RedisPerStep,
    /// Workflows of DBOS with a step that does nothing for each effect of a run.
    BareDbos,
    /// Workflows of Temporal with an activity that does nothing for each effect of a run.
    BareTemporal,
    /// The durable runtime: DBOS and the sessions on the PostgreSQL server for tests.
    DurablePostgres,
    /// Temporal's server for tests, the sessions on the PostgreSQL server for tests.
    TemporalPostgres,
}

/// What carries runs out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// This process.
    Local,
    /// Workflows of DBOS.
    Durable,
    /// Workflows of Temporal.
    Temporal,
}

impl Subject {
    /// Where its sessions are kept, if anywhere.
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

    /// What carries its runs out.
    pub(crate) fn engine(self) -> Engine {
        match self {
            Self::DurablePostgres => Engine::Durable,
            Self::TemporalPostgres => Engine::Temporal,
            _ => Engine::Local,
        }
    }

    /// When its facts are appended.
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

/// A store, and what an acknowledged append of it survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Store {
    /// Nothing.
    Memory,
    /// A loss of power: `Synchronous::Full`, the default.
    Sqlite,
    /// A killed process: `Synchronous::Normal`.
    SqliteNormal,
    /// A loss of power: the server for tests has `fsync` and `synchronous_commit` on.
    Postgres,
    /// A killed process, and of the server's crashes those that lose no last moment:
    /// `synchronous_commit` off.
    PostgresAsync,
    /// A loss of power: the server for tests has `appendfsync always`.
    Redis,
    /// A killed process, and of losses of power those after a second: `appendfsync everysec`.
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
