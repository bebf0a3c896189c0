//! The connection for everything except notifications, and its recovery after a loss.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionLike as _, ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, Value};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::detached::detached;
use crate::error::classify;
use crate::location::Location;
use crate::reply::Reply;
use crate::script::Script;

/// The pauses between two connection attempts: the first one and the maximum.
const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// A connection to a server, or to each node of a cluster. Clones share it, and requests are
/// pipelined: a request does not wait for the replies to other requests.
#[derive(Clone)]
pub(crate) struct Server {
    connection: Connection,
    is_closed: Arc<AtomicBool>,
}

#[derive(Clone)]
enum Connection {
    Single(ConnectionManager),
    Cluster(ClusterConnection),
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").finish_non_exhaustive()
    }
}

impl Server {
    pub(crate) async fn connect(
        location: &Location,
        is_cluster: bool,
        operation_timeout: Duration,
    ) -> Result<Self> {
        let connection = if is_cluster {
            let mut cluster =
                ClusterClient::builder([location.client.get_connection_info().clone()])
                    .connection_timeout(operation_timeout)
                    .response_timeout(operation_timeout);
            if let Some(certificates) = &location.certificates {
                cluster = cluster.certs(certificates.clone());
            }
            let connection = cluster.build().map_err(classify)?.get_async_connection().await;
            Connection::Cluster(connection.map_err(classify)?)
        } else {
            let config = ConnectionManagerConfig::new()
                .set_number_of_retries(1)
                .set_min_delay(PAUSES.0)
                .set_max_delay(PAUSES.1)
                .set_connection_timeout(Some(operation_timeout))
                .set_response_timeout(Some(operation_timeout));
            let manager = ConnectionManager::new_with_config(location.client.clone(), config).await;
            Connection::Single(manager.map_err(classify)?)
        };
        Ok(Self { connection, is_closed: Arc::default() })
    }

    /// Closes the store: later requests fail.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorCode::Closed, "the store was closed"));
        }
        Ok(())
    }

    /// Runs a script.
    pub(crate) async fn eval<K: AsRef<str>>(
        &self,
        script: &Script,
        keys: &[K],
        args: &[&[u8]],
    ) -> Result<Reply> {
        self.check_open()?;
        let command = |cmd: &str, script: &str| {
            let mut cmd = redis::cmd(cmd);
            cmd.arg(script).arg(keys.len());
            for key in keys {
                cmd.arg(key.as_ref());
            }
            cmd.arg(args);
            cmd
        };
        let result = match self.send(command("EVALSHA", script.digest())).await? {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.send(command("EVAL", script.text())).await?
            }
            result => result,
        };
        Reply::new(result.map_err(classify)?)
    }

    /// Runs a command.
    pub(crate) async fn run(&self, cmd: &Cmd) -> Result<Value> {
        self.check_open()?;
        self.send(cmd.clone()).await?.map_err(classify)
    }

    /// Returns the number of members of an index.
    pub(crate) async fn size(&self, index: &str) -> Result<u64> {
        let value = self.run(redis::cmd("ZCARD").arg(index)).await?;
        redis::from_redis_value(value).map_err(|error| classify(error.into()))
    }

    /// Removes all keys that match a pattern. Only for a single server.
    pub(crate) async fn remove_all(&self, pattern: &str) -> Result<()> {
        let mut cursor = "0".to_owned();
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(&cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(1000);
            let found = redis::from_redis_value(self.run(&scan).await?);
            let (next, keys): (String, Vec<Vec<u8>>) =
                found.map_err(|error| classify(error.into()))?;
            if !keys.is_empty() {
                self.run(redis::cmd("UNLINK").arg(keys)).await?;
            }
            if next == "0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// Sends a command. If the connection was lost, sends it once more on a new connection, which
    /// the driver opens. The server may therefore run a command twice. A script whose first reply
    /// was lost must recognise its own effect, or a later read must determine whether it took
    /// effect. The store's caller handles retries while a server is unavailable.
    async fn send(&self, cmd: Cmd) -> Result<RedisResult<Value>> {
        let connection = self.connection.clone();
        // Runs on its own task, because the driver's queue is short and grants its slots in order:
        // an unpolled caller would block others.
        let asking = async move {
            Ok(match connection.send(&cmd).await {
                Err(error) if error.is_connection_dropped() => connection.send(&cmd).await,
                result => result,
            })
        };
        detached(asking).await
    }
}

impl Connection {
    async fn send(&self, cmd: &Cmd) -> RedisResult<Value> {
        let result = match self.clone() {
            Self::Single(mut connection) => connection.req_packed_command(cmd).await,
            Self::Cluster(mut connection) => connection.req_packed_command(cmd).await,
        };
        result.and_then(Value::extract_error)
    }
}
