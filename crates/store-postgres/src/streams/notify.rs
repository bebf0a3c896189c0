//! Telling other processes that there is more: a notification apart from what it tells of, for several streams at once,
//! because the server takes notifications one at a time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::postgres::PgConnection;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;

use crate::connections::{Connections, drive};
use crate::error::Failure;
use crate::lock;
use crate::sql::{Schema, Sql};

/// How long to gather after one notification for the next one.
const PAUSE: Duration = Duration::from_millis(5);

/// How many streams one notification names. It has room for 8,000 bytes.
const MOST: usize = 400;

/// Who sends notifications of this store.
#[derive(Debug)]
pub(crate) struct Notifier {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    channel: String,
    send: Sql,
    /// Streams that nobody was told of yet.
    streams: Mutex<BTreeSet<u64>>,
    written: Notify,
}

impl Notifier {
    pub(crate) fn new(schema: &Schema) -> Self {
        let send =
            schema.sql("SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)");
        let shared = Shared {
            channel: schema.name().to_owned(),
            send,
            streams: Mutex::default(),
            written: Notify::new(),
        };
        Self { shared: Arc::new(shared), task: Mutex::default() }
    }

    /// Something was written; returns at once.
    pub(crate) fn written(&self, session: &SessionId, connections: &Arc<Connections>) {
        lock(&self.shared.streams).insert(number(session));
        self.shared.written.notify_one();
        let mut task = lock(&self.task);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let (shared, connections) = (Arc::clone(&self.shared), Arc::clone(connections));
            *task = Some(tokio::spawn(shared.run(connections)));
        }
    }

    /// Tells what is not told yet, and ends.
    pub(crate) async fn finish(&self, connections: &Connections) {
        self.close();
        // Nobody hears of it if the server cannot be reached.
        drop(self.shared.tell(connections).await);
    }

    pub(crate) fn close(&self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

impl Shared {
    async fn run(self: Arc<Self>, connections: Arc<Connections>) {
        loop {
            self.written.notified().await;
            if let Err(error) = self.tell(&connections).await {
                tracing::debug!(%error, "readers in other processes have to find by themselves");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn tell(&self, connections: &Connections) -> Result<()> {
        loop {
            let some: Vec<u64> = {
                let mut streams = lock(&self.streams);
                let some: Vec<u64> = streams.iter().copied().take(MOST).collect();
                streams.retain(|it| !some.contains(it));
                some
            };
            if some.is_empty() {
                return Ok(());
            }
            let payload = some.iter().map(|it| format!("{it:x}")).collect::<Vec<_>>().join(" ");
            drive!(connections, |connection| self.send(connection, &payload))?;
        }
    }

    async fn send(&self, connection: &mut PgConnection, payload: &str) -> Result<(), Failure> {
        let query = self.send.query().bind(self.channel.as_str()).bind(payload);
        query.execute(connection).await?;
        Ok(())
    }
}

/// The streams that a notification names.
pub(super) fn named(payload: &str) -> impl Iterator<Item = u64> {
    payload.split(' ').filter_map(|it| u64::from_str_radix(it, 16).ok())
}

/// By which a notification names a stream: short, whatever the id, and the same in each process (FNV-1a). That two
/// streams share one costs a look.
pub(super) fn number(session: &SessionId) -> u64 {
    session.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
