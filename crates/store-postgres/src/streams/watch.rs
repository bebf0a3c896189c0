//! Notification of readers: immediate for writes of this process, by server notifications for
//! writes of other processes, and by polling in case a notification was lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::Row as _;
use sqlx::pool::PoolOptions;
use sqlx::postgres::{PgConnection, PgListener, Postgres};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::JoinHandle;

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;

use super::notify::{number, parse_payload};
use crate::config::Config;
use crate::connections::{Connections, drive};
use crate::error::{Failure, closed};
use crate::lock;
use crate::sql::{Schema, Sql};

/// The pause before the store listens again after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// The readers of each stream. From the first reader until the store is closed, one task listens
/// and one polls.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    listens: bool,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    readers: Mutex<Readers>,
    channel: String,
    lookup: Sql,
    poll_interval: Duration,
}

#[derive(Debug, Default)]
struct Readers {
    streams: HashMap<SessionId, Stream>,
    is_closed: bool,
}

#[derive(Debug)]
struct Stream {
    /// The number that identifies the stream in notifications.
    number: u64,
    readers: usize,
    written: Arc<Notify>,
    /// The state at the last poll; `None` before the first poll.
    polled: Option<Polled>,
}

/// A stream's id, which distinguishes it from the next stream of its session, and its last chunk;
/// `None` if there is no stream.
type Polled = Option<(i64, i64)>;

/// A reader's registration.
pub(super) struct Subscription {
    shared: Arc<Shared>,
    session: SessionId,
    written: Arc<Notify>,
}

impl Subscription {
    /// Returns a future that resolves once the stream may have been written to after this call.
    pub(super) fn written(&self) -> Notified<'_> {
        self.written.notified()
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.shared.readers).is_closed
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut readers = lock(&self.shared.readers);
        if let Some(stream) = readers.streams.get_mut(&self.session) {
            stream.readers -= 1;
            if stream.readers == 0 {
                readers.streams.remove(&self.session);
            }
        }
    }
}

impl Watch {
    pub(crate) fn new(config: &Config, schema: &Schema, connections: Arc<Connections>) -> Self {
        let shared = Shared {
            readers: Mutex::default(),
            channel: schema.name().to_owned(),
            lookup: schema
                .sql("SELECT session, id, last_seq FROM {s}.streams WHERE session = ANY($1)"),
            poll_interval: config.poll_interval(),
        };
        let (shared, listens) = (Arc::new(shared), config.listens());
        Self { shared, connections, listens, tasks: Mutex::default() }
    }

    pub(super) fn subscribe(&self, session: &SessionId) -> Result<Subscription> {
        let written = {
            let mut readers = lock(&self.shared.readers);
            if readers.is_closed {
                return Err(closed());
            }
            let stream = readers.streams.entry(session.clone()).or_insert_with(|| Stream {
                number: number(session),
                readers: 0,
                written: Arc::default(),
                polled: None,
            });
            stream.readers += 1;
            Arc::clone(&stream.written)
        };
        self.start();
        Ok(Subscription { shared: Arc::clone(&self.shared), session: session.clone(), written })
    }

    /// Wakes the readers of a stream in this process.
    pub(super) fn written(&self, session: &SessionId) {
        if let Some(stream) = lock(&self.shared.readers).streams.get(session) {
            stream.written.notify_waiters();
        }
    }

    /// Stops listening and polling, and wakes all readers so that they notice that the store is
    /// closed.
    pub(crate) fn close(&self) {
        {
            let mut readers = lock(&self.shared.readers);
            readers.is_closed = true;
            readers.wake(|_| true);
        }
        for task in lock(&self.tasks).drain(..) {
            task.abort();
        }
    }

    /// Starts the tasks if they are not running: on first use, or if the tokio runtime on which
    /// they ran was shut down.
    fn start(&self) {
        let mut tasks = lock(&self.tasks);
        if !tasks.is_empty() && !tasks.iter().any(JoinHandle::is_finished) {
            return;
        }
        tasks.drain(..).for_each(|task| task.abort());
        let poll = Arc::clone(&self.shared).poll(Arc::clone(&self.connections));
        tasks.push(tokio::spawn(poll));
        if self.listens {
            let listen = Arc::clone(&self.shared).listen(Arc::clone(&self.connections));
            tasks.push(tokio::spawn(listen));
        }
    }
}

impl Shared {
    async fn poll(self: Arc<Self>, connections: Arc<Connections>) {
        loop {
            tokio::time::sleep(self.poll_interval).await;
            let streams: Vec<SessionId> = lock(&self.readers).streams.keys().cloned().collect();
            if streams.is_empty() {
                continue;
            }
            let names: Vec<&str> = streams.iter().map(SessionId::as_str).collect();
            match drive!(connections, |connection| self.lookup(connection, &names)) {
                Ok(found) => lock(&self.readers).found(&streams, &found),
                Err(error) => tracing::debug!(%error, "could not poll for chunks"),
            }
        }
    }

    /// Returns the id and the last chunk of those of the given streams that exist.
    async fn lookup(
        &self,
        connection: &mut PgConnection,
        names: &[&str],
    ) -> Result<HashMap<SessionId, (i64, i64)>, Failure> {
        let rows = self.lookup.query().bind(names).fetch_all(connection).await?;
        let found = rows.iter().map(|row| {
            let session = SessionId::from(row.try_get::<&str, _>(0)?);
            Ok((session, (row.try_get(1)?, row.try_get(2)?)))
        });
        found.collect()
    }

    /// Listens on a dedicated connection and reconnects after errors.
    async fn listen(self: Arc<Self>, connections: Arc<Connections>) {
        loop {
            if let Err(error) = self.receive(&connections).await {
                tracing::debug!(%error, "cannot listen for notifications; polling continues");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn receive(&self, connections: &Connections) -> Result<(), sqlx::Error> {
        let pool = PoolOptions::<Postgres>::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            // An unavailable server is logged elsewhere.
            .acquire_slow_threshold(Duration::MAX)
            .connect_lazy_with(connections.options());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.listen(&self.channel).await?;
        // Writes before this point did not notify this listener.
        lock(&self.readers).wake(|_| true);
        loop {
            match listener.try_recv().await? {
                Some(notification) => {
                    let numbers: Vec<u64> = parse_payload(notification.payload()).collect();
                    lock(&self.readers).wake(|stream| numbers.contains(&stream.number));
                }
                // The connection was lost and replaced.
                None => lock(&self.readers).wake(|_| true),
            }
        }
    }
}

impl Readers {
    fn wake(&self, which: impl Fn(&Stream) -> bool) {
        for stream in self.streams.values().filter(|stream| which(stream)) {
            stream.written.notify_waiters();
        }
    }

    /// Wakes the readers of streams that have grown or were forgotten since the last poll.
    fn found(&mut self, asked: &[SessionId], found: &HashMap<SessionId, (i64, i64)>) {
        for session in asked {
            let Some(stream) = self.streams.get_mut(session) else { continue };
            let polled = found.get(session).copied();
            if stream.polled.replace(polled) != Some(polled) {
                stream.written.notify_waiters();
            }
        }
    }
}
