//! What runs left under a prefix of a Redis server.

use anyhow::{Context as _, Result};
use redis::aio::MultiplexedConnection;

use crate::job::Traces;
use crate::measure::place::RedisCorner;

/// A look from before. What others do on the server meanwhile counts, too.
pub(in crate::measure) struct Watch {
    connection: MultiplexedConnection,
    prefix: String,
    written_before: u64,
}

impl Watch {
    pub(super) async fn begin(corner: &RedisCorner) -> Result<Self> {
        let mut connection = corner.connect().await?;
        let written_before = number(&mut connection, "persistence", "aof_current_size").await?;
        Ok(Self { connection, prefix: corner.prefix.clone(), written_before })
    }

    pub(super) async fn end(mut self) -> Result<Traces> {
        let connection = &mut self.connection;
        let written = number(connection, "persistence", "aof_current_size").await?;
        let (mut rows, mut stream_rows, mut kept_bytes) = (0, 0, 0);
        for key in keys(connection, &self.prefix).await? {
            let counted = entries(connection, &key).await?;
            kept_bytes += bytes(connection, &key).await?;
            let is_of_stream =
                [":feed", ":chunks", ":open", ":marks"].iter().any(|it| key.ends_with(it));
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

/// Keys of sessions, not of the store's indexes.
async fn keys(connection: &mut MultiplexedConnection, prefix: &str) -> Result<Vec<String>> {
    let (mut found, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let pattern = format!("{prefix}:*");
        let mut scan = redis::cmd("SCAN");
        scan.arg(&cursor).arg(&["MATCH", &pattern, "COUNT", "1000"]);
        let (next, keys): (String, Vec<String>) = scan.query_async(connection).await?;
        found.extend(keys.into_iter().filter(|it| !it.contains(":{index}:")));
        if next == "0" {
            return Ok(found);
        }
        cursor = next;
    }
}

/// The entries of a stream; a hash is one row.
async fn entries(connection: &mut MultiplexedConnection, key: &str) -> Result<u64> {
    let kind: String = redis::cmd("TYPE").arg(key).query_async(connection).await?;
    match &*kind {
        "stream" => Ok(redis::cmd("XLEN").arg(key).query_async(connection).await?),
        _ => Ok(1),
    }
}

/// The memory of a key with all that it holds.
async fn bytes(connection: &mut MultiplexedConnection, key: &str) -> Result<u64> {
    let mut usage = redis::cmd("MEMORY");
    usage.arg(&["USAGE", key, "SAMPLES", "0"]);
    Ok(usage.query_async(connection).await?)
}

/// A number of what the server says about itself.
async fn number(connection: &mut MultiplexedConnection, about: &str, name: &str) -> Result<u64> {
    let info: String = redis::cmd("INFO").arg(about).query_async(connection).await?;
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    Ok(value.with_context(|| format!("the server does not say its {name}"))?.trim().parse()?)
}
