//! Connections to the server: the store's own, or those of a pool that the caller supplied.
//!
//! The store's own connections are few and are each lent to one operation at a time. The driver's
//! pool sends a query each time a connection is returned, which would add a second round trip to
//! each append, so the store uses such a pool only if the caller supplies it.

use std::ops::{Deref, DerefMut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool};
use sqlx::{Connection as _, Postgres};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::error::{Failure, closed};
use crate::lock;

/// A connection that was idle for longer is pinged before use, because firewalls drop idle
/// connections.
const PING_AFTER: Duration = Duration::from_secs(30);

/// The maximum age of a connection. Server sessions accumulate memory, so older ones are closed.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// The maximum number of tries of a statement that conflicts with other statements.
const TRIES: u32 = 6;

/// The pause after the first try. It doubles with each try.
const PAUSE: Duration = Duration::from_millis(10);

/// The timeouts of connections and operations.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// The time to wait for a free or new connection.
    pub(crate) connection: Duration,
    /// The time that one operation may take.
    pub(crate) operation: Duration,
}

/// The connections on which operations run.
#[derive(Debug)]
pub(crate) struct Connections {
    source: Source,
    timeouts: Timeouts,
    is_closed: AtomicBool,
}

#[derive(Debug)]
enum Source {
    Own(Box<OwnPool>),
    External(PgPool),
}

#[derive(Debug)]
pub(crate) struct OwnPool {
    options: PgConnectOptions,
    /// The statement that is executed first on each connection.
    setup: Option<String>,
    idle: Mutex<Vec<OpenConnection>>,
    permits: Semaphore,
}

#[derive(Debug)]
pub(crate) struct OpenConnection {
    connection: PgConnection,
    opened: Instant,
    used: Instant,
    was_idle: bool,
}

/// A connection that is in use. It is closed afterwards unless it is kept, because its state is
/// unknown.
pub(crate) enum Checkout<'c> {
    Own { own: &'c OwnPool, open: OpenConnection, _permit: SemaphorePermit<'c> },
    External(PoolConnection<Postgres>),
}

impl Deref for Checkout<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match self {
            Self::Own { open, .. } => &open.connection,
            Self::External(connection) => connection,
        }
    }
}

impl DerefMut for Checkout<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match self {
            Self::Own { open, .. } => &mut open.connection,
            Self::External(connection) => connection,
        }
    }
}

impl Checkout<'_> {
    /// Returns `true` if the connection was idle before, so that it may have been lost meanwhile. A
    /// supplied pool checks its connections itself.
    pub(crate) fn was_idle(&self) -> bool {
        matches!(self, Self::Own { open, .. } if open.was_idle)
    }

    /// Keeps or closes the connection, depending on the result of the operation.
    pub(crate) fn end<T>(self, result: Result<T, Failure>) -> Result<T, Failure> {
        match result {
            Ok(_) | Err(Failure::Own(_)) => self.keep(),
            Err(Failure::Driver(_) | Failure::TimedOut) => self.close(),
        }
        result
    }

    fn keep(self) {
        if let Self::Own { own, mut open, .. } = self
            && !own.permits.is_closed()
        {
            (open.used, open.was_idle) = (Instant::now(), true);
            lock(&own.idle).push(open);
        }
    }

    fn close(self) {
        if let Self::External(mut connection) = self {
            connection.close_on_drop();
        }
    }
}

impl Connections {
    pub(crate) fn own(
        options: PgConnectOptions,
        most: usize,
        setup: Option<String>,
        timeouts: Timeouts,
    ) -> Self {
        let (idle, permits) = (Mutex::default(), Semaphore::new(most.max(1)));
        let own = OwnPool { options, setup, idle, permits };
        Self { source: Source::Own(Box::new(own)), timeouts, is_closed: AtomicBool::new(false) }
    }

    pub(crate) fn external(pool: PgPool, timeouts: Timeouts) -> Self {
        Self { source: Source::External(pool), timeouts, is_closed: AtomicBool::new(false) }
    }

    /// Returns the options of new connections.
    pub(crate) fn options(&self) -> PgConnectOptions {
        match &self.source {
            Source::Own(own) => own.options.clone(),
            Source::External(pool) => pool.connect_options().as_ref().clone(),
        }
    }

    pub(crate) async fn acquire(&self) -> Result<Checkout<'_>, Failure> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(closed().into());
        }
        match &self.source {
            Source::Own(own) => own.acquire(self.timeouts.connection).await,
            Source::External(pool) => {
                let connection = timeout(self.timeouts.connection, Box::pin(pool.acquire()));
                Ok(Checkout::External(connection.await.map_err(|_| busy())??))
            }
        }
    }

    fn forget_idle(&self) {
        if let Source::Own(own) = &self.source {
            lock(&own.idle).clear();
        }
    }

    /// Rejects later operations and closes the store's own idle connections. Operations in progress
    /// are not awaited; their connections are closed when they end. A supplied pool stays open.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let Source::Own(own) = &self.source else { return };
        own.permits.close();
        let idle = std::mem::take(&mut *lock(&own.idle));
        for open in idle {
            // The connection is discarded, so the server's reply does not matter.
            drop(timeout(self.timeouts.connection, open.connection.close()).await);
        }
    }
}

/// Runs `work` on a connection. If a connection was idle and turns out to be lost, the work runs
/// again on a new one. Work whose statement conflicts with another one also runs again, after a
/// pause. Nothing else is repeated here: the caller of the store retries while the server is
/// unavailable. (This is a macro because a closure that borrows the connection cannot express that
/// its future is `Send`.)
///
/// The work is boxed once there is a connection: a driver's future has tens of kilobytes, and
/// thousands of operations may wait for a connection.
macro_rules! drive {
    ($connections:expr, |$connection:ident| $work:expr) => {{
        let connections: &$crate::connections::Connections = &$connections;
        let mut tries = 0;
        loop {
            let mut was_idle = false;
            let result = match connections.acquire().await {
                Ok(mut checkout) => {
                    was_idle = checkout.was_idle();
                    let $connection: &mut sqlx::postgres::PgConnection = &mut checkout;
                    let result = connections.in_time(Box::pin($work)).await;
                    checkout.end(result)
                }
                Err(failure) => Err(failure),
            };
            tries += 1;
            if let Some(result) = connections.finish_or_retry(result, was_idle, tries).await {
                break result;
            }
        }
    }};
}
pub(crate) use drive;

impl Connections {
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        timeout(self.timeouts.operation, work).await.unwrap_or(Err(Failure::TimedOut))
    }

    /// Returns the result after `tries` tries. Returns `None` if the work is to be tried again,
    /// because the connection was lost while it was idle or the statement conflicted with another
    /// one.
    pub(crate) async fn finish_or_retry<T>(
        &self,
        result: Result<T, Failure>,
        was_idle: bool,
        tries: u32,
    ) -> Option<Result<T>> {
        let failure = match result {
            Ok(done) => return Some(Ok(done)),
            Err(failure) => failure,
        };
        if failure.is_lost() {
            self.forget_idle();
        }
        let is_replaced = failure.is_lost() && was_idle;
        if tries >= TRIES || !is_replaced && !failure.is_transient() {
            return Some(Err(failure.into()));
        }
        if is_replaced {
            return None;
        }
        let error = Error::from(failure);
        tracing::debug!(%error, "retrying");
        tokio::time::sleep(PAUSE * 2_u32.pow(tries - 1)).await;
        None
    }
}

impl OwnPool {
    async fn acquire(&self, limit: Duration) -> Result<Checkout<'_>, Failure> {
        let permit = timeout(limit, self.permits.acquire()).await.map_err(|_| busy())?;
        let permit = permit.map_err(|_| closed())?;
        loop {
            let idle = lock(&self.idle).pop();
            let Some(mut open) = idle else { break };
            if open.opened.elapsed() > MAX_AGE {
                continue;
            }
            if open.used.elapsed() > PING_AFTER
                && !matches!(timeout(limit, Box::pin(open.connection.ping())).await, Ok(Ok(())))
            {
                continue;
            }
            return Ok(Checkout::Own { own: self, open, _permit: permit });
        }
        let connection = timeout(limit, Box::pin(self.connect())).await;
        let connection = connection.map_err(|_| Failure::TimedOut)??;
        let now = Instant::now();
        let open = OpenConnection { connection, opened: now, used: now, was_idle: false };
        Ok(Checkout::Own { own: self, open, _permit: permit })
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = PgConnection::connect_with(&self.options).await?;
        if let Some(setup) = &self.setup {
            let setup = sqlx::AssertSqlSafe(setup.clone());
            sqlx::raw_sql(setup).execute(&mut connection).await?;
        }
        Ok(connection)
    }
}

fn busy() -> Error {
    let message = "no connection became available in time; increase the connection limit";
    Error::new(ErrorCode::StoreBusy, message)
}
