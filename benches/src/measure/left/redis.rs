//! The footprint of runs under a prefix of a Redis server.

use anyhow::{Context as _, Result};
use redis::aio::MultiplexedConnection;

use crate::job::Traces;
use crate::measure::place::RedisLocation;

/// The sizes at the start. Writes of other clients of the server count, too.
pub(in crate::measure) struct Watch {
    connection: MultiplexedConnection,
    prefix: String,
    written_before: u64,
}

impl Watch {
    pub(super) async fn begin(location: &RedisLocation) -> Result<Self> {
        let mut connection = location.connect().await?;
        let written_before = number(&mut connection, "persistence", "aof_current_size").await?;
        Ok(Self { connection, prefix: location.prefix.clone(), written_before })
    }

    pub(super) async fn end(mut self) -> Result<Traces> {
        let connection = &mut self.connection;
        let written = number(connection, "persistence", "aof_current_size").await?;
        let (mut rows, mut stream_rows, mut kept_bytes) = (0, 0, 0);
        for key in keys(connection, &self.prefix).await? {
            let counted = entries(connection, &key).await?;
            kept_bytes += bytes(connection, &key).await?;
            let is_of_stream =
                [":feed", ":chunks", ":open", ":marks"].iter().any(|suffix| key.ends_with(suffix));
            *(if is_of_stream { &mut stream_rows } else { &mut rows }) += counted;
        }
        Ok(Traces {
            rows,
            stream_rows,
            written_bytes: written.saturating_sub(self.written_before),
            kept_bytes,
        })
    }
}

/// Returns the keys of sessions, without the store's indexes.
async fn keys(connection: &mut MultiplexedConnection, prefix: &str) -> Result<Vec<String>> {
    let (mut found, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let pattern = format!("{prefix}:*");
        let mut scan = redis::cmd("SCAN");
        scan.arg(&cursor).arg(&["MATCH", &pattern, "COUNT", "1000"]);
        let (next, keys): (String, Vec<String>) = scan.query_async(connection).await?;
        found.extend(keys.into_iter().filter(|key| !key.contains(":{index}:")));
        if next == "0" {
            return Ok(found);
        }
        cursor = next;
    }
}

/// Returns the number of entries of a stream. A key of another type counts as one.
async fn entries(connection: &mut MultiplexedConnection, key: &str) -> Result<u64> {
    let kind: String = redis::cmd("TYPE").arg(key).query_async(connection).await?;
    match &*kind {
        "stream" => Ok(redis::cmd("XLEN").arg(key).query_async(connection).await?),
        _ => Ok(1),
    }
}

/// Returns the memory usage of a key.
async fn bytes(connection: &mut MultiplexedConnection, key: &str) -> Result<u64> {
    let mut usage = redis::cmd("MEMORY");
    usage.arg(&["USAGE", key, "SAMPLES", "0"]);
    Ok(usage.query_async(connection).await?)
}

/// Returns a number from the server's `INFO`.
async fn number(connection: &mut MultiplexedConnection, about: &str, name: &str) -> Result<u64> {
    let info: String = redis::cmd("INFO").arg(about).query_async(connection).await?;
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(value.with_context(|| format!("the server does not report {name}"))?.trim().parse()?)
}
