//! The server's settings, and whether the store can use it.

use std::fmt;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, InfoDict};
use serde::{Serialize, Serializer};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::connection::Server;
use crate::error::classify;
use crate::keys::Keys;

/// The oldest supported version of Redis.
const OLDEST: (u32, u32) = (6, 2);

/// The schema version that this version of the store writes.
pub(crate) const SCHEMA: u32 = 2;

/// The data that survive a restart of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Persistence {
    /// Everything that was acknowledged, even after a power loss: `appendonly yes`, `appendfsync
    /// always`.
    Always,
    /// Everything except about the last second before a power loss: `appendonly yes`, `appendfsync
    /// everysec`.
    EverySecond,
    /// Only what the operating system had already written: `appendonly yes`, `appendfsync no`.
    SomeTime,
    /// An append-only file with an unknown sync policy, because the server does not reveal it.
    Unknown,
    /// The last snapshot, if snapshots are enabled: `appendonly no`.
    Snapshots,
}

impl fmt::Display for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Always => "appendfsync always",
            Self::EverySecond => "appendfsync everysec",
            Self::SomeTime => "appendfsync no",
            Self::Unknown => "appendonly yes, appendfsync unknown",
            Self::Snapshots => "appendonly no",
        })
    }
}

impl Serialize for Persistence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The settings that the server reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ServerSettings {
    /// The version of Redis.
    pub version: String,
    /// `true` if the server is part of a cluster.
    #[serde(rename = "cluster")]
    pub is_cluster: bool,
    /// `true` if the server is a replica of another server.
    #[serde(rename = "replica")]
    pub is_replica: bool,
    /// The eviction policy when the memory is full. The store requires `noeviction`.
    pub eviction: String,
    /// The memory limit in bytes; 0 means no limit.
    pub max_memory: u64,
    /// The used memory in bytes.
    pub used_memory: u64,
    /// The data that survive a restart of the server.
    pub persistence: Persistence,
    /// The number of connected replicas.
    pub replicas: u32,
}

impl ServerSettings {
    /// Rejects a server whose settings are unsuitable for the store.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.is_new_enough() {
            let message = "Redis is too old; the store needs version 6.2 or later";
            return Err(Error::new(ErrorCode::ConfigInvalid, message)
                .with_context("version", &self.version));
        }
        if self.eviction != "noeviction" {
            let message = "Redis would evict parts of logs when its memory is full; set \
                `maxmemory-policy noeviction`";
            return Err(Error::new(ErrorCode::ConfigInvalid, message)
                .with_context("maxmemory-policy", &self.eviction));
        }
        if self.is_replica {
            let message = "Redis is a read-only replica; use the URL of the primary";
            return Err(Error::new(ErrorCode::StoreReadOnly, message));
        }
        Ok(())
    }

    fn is_new_enough(&self) -> bool {
        let mut parts = self.version.split('.').map_while(|part| part.parse::<u32>().ok());
        (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= OLDEST
    }
}

/// Queries the server's settings on a separate connection.
pub(crate) async fn read(client: &Client, timeout: Duration) -> Result<ServerSettings> {
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
        fsync_policy(&mut connection).await
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

/// Returns how often the append-only file is synced to the disk. Managed servers may not reveal it.
async fn fsync_policy(connection: &mut MultiplexedConnection) -> Persistence {
    let mut get = redis::cmd("CONFIG");
    get.arg("GET").arg("appendfsync");
    let answer: redis::RedisResult<Vec<String>> = get.query_async(connection).await;
    match answer.ok().and_then(|values| values.into_iter().nth(1)).as_deref() {
        Some("always") => Persistence::Always,
        Some("everysec") => Persistence::EverySecond,
        Some("no") => Persistence::SomeTime,
        _ => Persistence::Unknown,
    }
}

/// Rejects an unknown schema version.
pub(crate) fn check_version(schema: Option<u32>) -> Result<()> {
    match schema {
        Some(found) if found > SCHEMA => {
            let message = "a newer version wrote under this prefix; upgrade this program";
            Err(Error::new(ErrorCode::StoreNewer, message)
                .with_context("schema", found)
                .with_context("known", SCHEMA))
        }
        _ => Ok(()),
    }
}

/// Returns the schema version of the data with this prefix, if there is any. The first session
/// records the version.
pub(crate) async fn schema(server: &Server, keys: &Keys) -> Result<Option<u32>> {
    let mut get = redis::cmd("GET");
    get.arg(keys.schema());
    let found: Option<String> =
        redis::from_redis_value(server.run(&get).await?).map_err(|error| classify(error.into()))?;
    let Some(found) = found else { return Ok(None) };
    let damaged = |_| {
        let message = "another program uses this prefix: its schema key contains no version; choose another \
                       prefix";
        Error::new(ErrorCode::StoreForeign, message).with_context("key", keys.schema())
    };
    found.parse().map(Some).map_err(damaged)
}

#[cfg(test)]
mod tests;
