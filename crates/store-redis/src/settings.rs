//! What the server says of itself, and whether that will do.

use std::fmt;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, InfoDict};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::connection::Server;
use crate::error::classify;
use crate::keys::Keys;

/// The oldest version of Redis that will do.
const OLDEST: (u32, u32) = (6, 2);

/// The form that this version gives to data.
pub(crate) const SCHEMA: u32 = 1;

/// What a restart of the server leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Persistence {
    /// Everything that was acknowledged, also after a loss of power: `appendonly yes`, `appendfsync always`.
    Always,
    /// All but about the last second before a loss of power: `appendonly yes`, `appendfsync everysec`.
    EverySecond,
    /// What the system happened to write: `appendonly yes`, `appendfsync no`.
    SomeTime,
    /// An append-only file of which the server does not tell how often it is forced to the disk.
    Unknown,
    /// What the last snapshot has, if there are snapshots: `appendonly no`.
    Snapshots,
}

impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Always => "appendfsync always",
            Self::EverySecond => "appendfsync everysec",
            Self::SomeTime => "appendfsync no",
            Self::Unknown => "appendonly yes, appendfsync not known",
            Self::Snapshots => "appendonly no",
        })
    }
}

/// What the server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerSettings {
    /// The version of Redis.
    pub version: String,
    /// Whether it is part of a cluster.
    pub is_cluster: bool,
    /// Whether it is a replica of another server.
    pub is_replica: bool,
    /// What it does when its memory is used up; `noeviction` is the one that will do.
    pub eviction: String,
    /// The most bytes that it may use; 0 for no bound.
    pub max_memory: u64,
    /// The bytes that it uses.
    pub used_memory: u64,
    /// What a restart leaves.
    pub persistence: Persistence,
    /// How many replicas follow it.
    pub replicas: u32,
}

impl ServerSettings {
    /// Refuses a server that would lose what it is given.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_new_enough() {
            let message = "Redis is too old; the store needs version 6.2 or a later one";
            return Err(Error::new(ErrorCode::ConfigInvalid, message)
                .with_context("version", &self.version));
        }
        if self.eviction != "noeviction" {
            let message = "Redis would throw away parts of logs when its memory is used up; set \
                `maxmemory-policy noeviction`";
            return Err(Error::new(ErrorCode::ConfigInvalid, message)
                .with_context("maxmemory-policy", &self.eviction));
        }
        if self.is_replica {
            let message = "Redis is a replica and cannot be written; name the primary";
            return Err(Error::new(ErrorCode::StoreReadOnly, message));
        }
        Ok(())
    }

    fn is_new_enough(&self) -> bool {
        let mut parts = self.version.split('.').map_while(|it| it.parse::<u32>().ok());
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= OLDEST
    }
}

/// Asks the server, on a connection of its own.
pub(crate) async fn ask(client: &Client, timeout: Duration) -> Result<ServerSettings> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(Some(timeout));
    let connection = client.get_multiplexed_async_connection_with_config(&config).await;
    let mut connection = connection.map_err(classify)?;
    let info: InfoDict = redis::cmd("INFO").query_async(&mut connection).await.map_err(classify)?;
    let text = |name: &str| info.get::<String>(name).unwrap_or_default();
    let number = |name: &str| info.get::<u64>(name).unwrap_or_default();
    let persistence = if number("aof_enabled") == 0 {
        Persistence::Snapshots
    } else {
        synchronisation(&mut connection).await
    };
    Ok(ServerSettings {
        version: text("redis_version"),
        is_cluster: number("cluster_enabled") == 1,
        is_replica: matches!(&*text("role"), "slave" | "replica"),
        eviction: text("maxmemory_policy"),
        max_memory: number("maxmemory"),
        used_memory: number("used_memory"),
        persistence,
        replicas: u32::try_from(number("connected_slaves")).unwrap_or(u32::MAX),
    })
}

/// How often the append-only file is forced to the disk. Servers that others run may not tell.
async fn synchronisation(connection: &mut MultiplexedConnection) -> Persistence {
    let mut get = redis::cmd("CONFIG");
    get.arg("GET").arg("appendfsync");
    let answer: redis::RedisResult<Vec<String>> = get.query_async(connection).await;
    match answer.ok().and_then(|it| it.into_iter().nth(1)).as_deref() {
        Some("always") => Persistence::Always,
        Some("everysec") => Persistence::EverySecond,
        Some("no") => Persistence::SomeTime,
        _ => Persistence::Unknown,
    }
}

/// Refuses data under this prefix of a form that is not known. The first session notes the form.
pub(crate) async fn check_schema(server: &Server, keys: &Keys) -> Result<()> {
    match schema(server, keys).await? {
        Some(found) if found > SCHEMA => {
            let message = "a newer version wrote under this prefix; upgrade this program";
            Err(Error::new(ErrorCode::StoreNewer, message)
                .with_context("schema", found)
                .with_context("known", SCHEMA))
        }
        _ => Ok(()),
    }
}

/// The form of the data under this prefix, if there are any.
pub(crate) async fn schema(server: &Server, keys: &Keys) -> Result<Option<u32>> {
    let mut get = redis::cmd("GET");
    get.arg(keys.schema());
    let found: Option<String> =
        redis::from_redis_value(server.run(&get).await?).map_err(|it| classify(it.into()))?;
    let Some(found) = found else { return Ok(None) };
    let damaged = |_| {
        let message = "the key that names the form of the data holds something else";
        Error::new(ErrorCode::StoreForeign, message).with_context("key", keys.schema())
    };
    found.parse().map(Some).map_err(damaged)
}

#[cfg(test)]
mod tests;
