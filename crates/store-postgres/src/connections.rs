//! Connections to the server: our own, or those of a pool that the user brought.
//!
//! Our own are few and handed out one at a time. The driver's pool asks the server once more each time a connection is
//! given back; that would be a second round trip for each append, so only users who bring a pool have it.

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

/// A connection that was not used for so long is asked first whether it still is one: firewalls forget.
const SUSPICIOUS: Duration = Duration::from_secs(30);

/// A connection is not kept for longer, because sessions of the server collect memory.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// How often a statement is tried that stands in the way of others.
const TRIES: u32 = 6;

/// The pause after the first try; it doubles.
const PAUSE: Duration = Duration::from_millis(10);

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// For a connection to be free, or made.
    pub(crate) connection: Duration,
    /// For one operation.
    pub(crate) operation: Duration,
}

/// What operations are carried out on.
#[derive(Debug)]
pub(crate) struct Connections {
    source: Source,
    patience: Patience,
    is_closed: AtomicBool,
}

#[derive(Debug)]
enum Source {
    Own(Box<Own>),
    Brought(PgPool),
}

#[derive(Debug)]
pub(crate) struct Own {
    options: PgConnectOptions,
    /// What is said first on each connection.
    greeting: Option<String>,
    idle: Mutex<Vec<Open>>,
    permits: Semaphore,
}

#[derive(Debug)]
pub(crate) struct Open {
    connection: PgConnection,
    opened: Instant,
    used: Instant,
    was_idle: bool,
}

/// A connection that is in use. Unless it is kept, it is closed in the end, because nobody knows in what state it is.
pub(crate) enum Lease<'c> {
    Own { own: &'c Own, open: Open, _permit: SemaphorePermit<'c> },
    Brought(PoolConnection<Postgres>),
}

impl Deref for Lease<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match self {
            Self::Own { open, .. } => &open.connection,
            Self::Brought(connection) => connection,
        }
    }
}

impl DerefMut for Lease<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match self {
            Self::Own { open, .. } => &mut open.connection,
            Self::Brought(connection) => connection,
        }
    }
}

impl Lease<'_> {
    /// Whether it was used before, so that nobody knows whether it still is one. A pool that was brought asks that
    /// itself.
    pub(crate) fn was_idle(&self) -> bool {
        matches!(self, Self::Own { open, .. } if open.was_idle)
    }

    /// What becomes of the connection now that something was done on it.
    pub(crate) fn end<T>(self, result: Result<T, Failure>) -> Result<T, Failure> {
        match result {
            Ok(_) | Err(Failure::Own(_)) => self.keep(),
            Err(Failure::Driver(_) | Failure::TooLate) => self.close(),
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
        if let Self::Brought(mut connection) = self {
            connection.close_on_drop();
        }
    }
}

impl Connections {
    pub(crate) fn own(
        options: PgConnectOptions,
        most: usize,
        greeting: Option<String>,
        patience: Patience,
    ) -> Self {
        let (idle, permits) = (Mutex::default(), Semaphore::new(most.max(1)));
        let own = Own { options, greeting, idle, permits };
        Self { source: Source::Own(Box::new(own)), patience, is_closed: AtomicBool::new(false) }
    }

    pub(crate) fn brought(pool: PgPool, patience: Patience) -> Self {
        Self { source: Source::Brought(pool), patience, is_closed: AtomicBool::new(false) }
    }

    /// How to reach the server.
    pub(crate) fn options(&self) -> PgConnectOptions {
        match &self.source {
            Source::Own(own) => own.options.clone(),
            Source::Brought(pool) => pool.connect_options().as_ref().clone(),
        }
    }

    pub(crate) async fn acquire(&self) -> Result<Lease<'_>, Failure> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(closed().into());
        }
        match &self.source {
            Source::Own(own) => own.acquire(self.patience.connection).await,
            Source::Brought(pool) => {
                let connection = timeout(self.patience.connection, pool.acquire());
                Ok(Lease::Brought(connection.await.map_err(|_| busy())??))
            }
        }
    }

    fn forget_idle(&self) {
        if let Source::Own(own) = &self.source {
            lock(&own.idle).clear();
        }
    }

    /// Waits for what is under way, and closes our own connections. A pool that was brought stays as it is.
    pub(crate) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let Source::Own(own) = &self.source else { return };
        own.permits.close();
        let idle = std::mem::take(&mut *lock(&own.idle));
        for open in idle {
            // It is of no use any more, whatever the server says to that.
            drop(timeout(self.patience.connection, open.connection.close()).await);
        }
    }
}

/// Carries out `work` on a connection. One that was idle and is lost is replaced at once, by a new one; nothing else is
/// repeated then: who waits for a server that is away is above the store. `work` is written down for each try. (It is no closure, because nothing can say of one that
/// borrows the connection that its future may move between threads.)
macro_rules! drive {
    ($connections:expr, |$connection:ident| $work:expr) => {{
        let connections: &$crate::connections::Connections = &$connections;
        let mut tries = 0;
        loop {
            let mut was_idle = false;
            let result = match connections.acquire().await {
                Ok(mut lease) => {
                    was_idle = lease.was_idle();
                    let $connection: &mut sqlx::postgres::PgConnection = &mut lease;
                    let result = connections.in_time($work).await;
                    lease.end(result)
                }
                Err(failure) => Err(failure),
            };
            tries += 1;
            if let Some(result) = connections.judge(result, was_idle, tries).await {
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
        timeout(self.patience.operation, work).await.unwrap_or(Err(Failure::TooLate))
    }

    /// The result of so many tries; none if it is to be tried again, because the connection had died while it was idle
    /// or the statement stood in the way of another one.
    pub(crate) async fn judge<T>(
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
        if tries >= TRIES || !is_replaced && !failure.is_passing() {
            return Some(Err(failure.into()));
        }
        if is_replaced {
            return None;
        }
        let error = Error::from(failure);
        tracing::debug!(%error, "asking again");
        tokio::time::sleep(PAUSE * 2_u32.pow(tries - 1)).await;
        None
    }
}

impl Own {
    async fn acquire(&self, patience: Duration) -> Result<Lease<'_>, Failure> {
        let permit = timeout(patience, self.permits.acquire()).await.map_err(|_| busy())?;
        let permit = permit.map_err(|_| closed())?;
        loop {
            let idle = lock(&self.idle).pop();
            let Some(mut open) = idle else { break };
            if open.opened.elapsed() > MAX_AGE {
                continue;
            }
            if open.used.elapsed() > SUSPICIOUS
                && !matches!(timeout(patience, open.connection.ping()).await, Ok(Ok(())))
            {
                continue;
            }
            return Ok(Lease::Own { own: self, open, _permit: permit });
        }
        let connection = timeout(patience, self.connect()).await;
        let connection = connection.map_err(|_| Failure::TooLate)??;
        let now = Instant::now();
        let open = Open { connection, opened: now, used: now, was_idle: false };
        Ok(Lease::Own { own: self, open, _permit: permit })
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = PgConnection::connect_with(&self.options).await?;
        if let Some(greeting) = &self.greeting {
            let greeting = sqlx::AssertSqlSafe(greeting.clone());
            sqlx::raw_sql(greeting).execute(&mut connection).await?;
        }
        Ok(connection)
    }
}

fn busy() -> Error {
    let message = "no connection became free in time; allow the store more of them";
    Error::new(ErrorCode::StoreBusy, message)
}
