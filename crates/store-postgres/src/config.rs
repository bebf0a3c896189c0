//! Options of the PostgreSQL store.

use std::fmt;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use sqlx::postgres::{PgConnectOptions, PgPool};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::connections::{Connections, Timeouts};
use crate::sql::{Prepared, Schema};
use crate::{Inspection, PostgresStore, inspect, migrations};

/// The default schema of a store's tables.
pub const DEFAULT_SCHEMA: &str = "helix_agents";

/// The values of `pooler=…` in a URL: the unit of work for which the pooler lends out a connection.
const POOLERS: [&str; 2] = ["transaction", "session"];

/// Options for opening a [`PostgresStore`].
#[derive(Debug, Clone)]
#[must_use]
pub struct PostgresBuilder {
    pub(crate) config: Config,
}

/// The options that the builder collects.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    source: Source,
    schema: String,
    connections: usize,
    timeouts: Timeouts,
    migrate: bool,
    behind_pooler: bool,
    poll_interval: Option<Duration>,
    pub(crate) stream_retention: u64,
}

/// The way to reach the server.
#[derive(Clone)]
enum Source {
    Url(String),
    Pool(PgPool),
}

/// Omits the URL, which contains the password.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url(_) => "Url",
            Self::Pool(_) => "Pool",
        })
    }
}

impl PostgresBuilder {
    pub(crate) fn of_url(url: &str) -> Self {
        let (url, parameters) = take_store_parameters(url);
        let mut builder = Self::new(Source::Url(url));
        for (name, value) in parameters {
            builder = match name {
                "schema" => builder.schema(value),
                _ => builder.behind_transaction_pooler(value == POOLERS[0]),
            };
        }
        builder
    }

    pub(crate) fn of_pool(pool: PgPool) -> Self {
        Self::new(Source::Pool(pool))
    }

    fn new(source: Source) -> Self {
        let timeouts =
            Timeouts { connection: Duration::from_secs(10), operation: Duration::from_secs(30) };
        Self {
            config: Config {
                source,
                schema: DEFAULT_SCHEMA.to_owned(),
                connections: 16,
                timeouts,
                migrate: true,
                behind_pooler: false,
                poll_interval: None,
                stream_retention: 100_000,
            },
        }
    }

    /// Sets the database schema of the store's tables. Defaults to the `?schema=name` parameter of
    /// the URL, or to [`DEFAULT_SCHEMA`]. Stores in different schemas are independent of each
    /// other.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.config.schema = schema.into();
        self
    }

    /// Sets the maximum number of connections that the store opens, at least one. The connection
    /// for `LISTEN` does not count. Defaults to 16. A pool that the caller supplies has its own
    /// limit.
    pub fn connections(mut self, most: usize) -> Self {
        self.config.connections = most;
        self
    }

    /// Sets how long an operation waits for a free connection before it fails with
    /// [`StoreBusy`](ErrorCode::StoreBusy), and how long it then waits until a new connection is
    /// established before it fails with [`StoreUnavailable`](ErrorCode::StoreUnavailable). Defaults
    /// to ten seconds each.
    pub fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.connection = timeout;
        self
    }

    /// Sets how long one operation may take before it fails with
    /// [`StoreUnavailable`](ErrorCode::StoreUnavailable). The server cancels the statement at that
    /// time, too, except on a connection of a supplied pool or behind a transaction pooler.
    /// Defaults to 30 seconds.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.config.timeouts.operation = timeout;
        self
    }

    /// Sets the approximate number of chunks that are kept per stream, at least one. Older chunks
    /// are trimmed periodically. Defaults to 100,000.
    pub fn stream_retention(mut self, chunks: u64) -> Self {
        self.config.stream_retention = chunks;
        self
    }

    /// Sets the interval at which the store polls for chunks of other processes while a stream has
    /// readers. Readers see chunks of this process immediately, and chunks of other processes when
    /// the server sends a notification. Polling finds chunks whose notification was lost. Defaults
    /// to one second, or 100 ms [behind a pooler](Self::behind_transaction_pooler).
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.config.poll_interval = Some(interval);
        self
    }

    /// Sets whether the URL points to a pooler that lends out a connection per transaction, such as
    /// PgBouncer in transaction mode. Defaults to `false`, or to `true` with `?pooler=transaction`
    /// in the URL. It must be set behind such a pooler, because otherwise the server could execute
    /// another client's prepared statement instead of the store's.
    ///
    /// Behind a pooler, the store leaves no settings on connections. It does not use `LISTEN`,
    /// which such a pooler does not support, so the readers of streams poll. When the store opens,
    /// it detects whether the pooler supports prepared statements across connections (PgBouncer
    /// since 1.21, if `max_prepared_statements` is not 0). Otherwise it prepares each statement
    /// again for every execution, in a transaction of its own, which takes four round trips instead
    /// of one.
    pub fn behind_transaction_pooler(mut self, behind: bool) -> Self {
        self.config.behind_pooler = behind;
        self
    }

    /// Sets whether opening creates the tables and migrates older ones. Defaults to `true`. With
    /// `false`, opening needs no `CREATE` privilege, but fails unless the tables have been migrated
    /// with `helix migrate` or [`migrate`](Self::migrate).
    pub fn migrate_on_open(mut self, migrate: bool) -> Self {
        self.config.migrate = migrate;
        self
    }

    /// Returns the approximate number of chunks that are kept per stream.
    pub fn kept_chunks(&self) -> u64 {
        self.config.stream_retention.max(1)
    }

    /// Opens the store.
    ///
    /// # Errors
    /// [`ConfigInvalid`](ErrorCode::ConfigInvalid) for an invalid URL, user, password or database;
    /// [`StoreUnavailable`](ErrorCode::StoreUnavailable) if the server is unreachable;
    /// [`StoreForeign`](ErrorCode::StoreForeign) if the schema contains tables of another program;
    /// [`StoreNewer`](ErrorCode::StoreNewer) if a newer version wrote it;
    /// [`StoreOlder`](ErrorCode::StoreOlder) if the tables need a migration and
    /// [`migrate_on_open`](Self::migrate_on_open) is off;
    /// [`StoreReadOnly`](ErrorCode::StoreReadOnly) if the server is a standby or the user lacks
    /// write privileges; [`Unsupported`](ErrorCode::Unsupported) if the server is too old.
    pub async fn open(self) -> Result<PostgresStore> {
        let result = PostgresStore::start(&self.config).await;
        result.map_err(|error| error.with_operation("store::open"))
    }

    /// Creates the tables or migrates older ones. Returns the schema version before and after.
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub async fn migrate(self) -> Result<(u32, u32)> {
        let migrate = async || {
            let (connections, schema) = (self.config.connect()?, self.config.schema()?);
            let before = migrations::run(&connections, &schema).await?;
            connections.close().await;
            Ok((before, migrations::newest()))
        };
        migrate().await.map_err(|error: Error| error.with_operation("store::migrate"))
    }

    /// Inspects the database without changing it. Returns `None` if the schema does not exist or is
    /// empty.
    ///
    /// # Errors
    /// Fails like [`open`](Self::open) for a database that `open` would refuse.
    pub async fn inspect(&self) -> Result<Option<Inspection>> {
        let inspect = async || {
            let (connections, schema) = (self.config.connect()?, self.config.schema()?);
            let inspection = inspect::inspect(&connections, &schema).await?;
            connections.close().await;
            Ok(inspection)
        };
        inspect().await.map_err(|error: Error| error.with_operation("store::inspect"))
    }

    /// Drops the schema with everything in it, if it belongs to a store. Meant for tests.
    ///
    /// # Errors
    /// Same as [`open`](Self::open).
    pub async fn destroy(self) -> Result<()> {
        let destroy = async || {
            let (connections, schema) = (self.config.connect()?, self.config.schema()?);
            migrations::destroy(&connections, &schema).await?;
            connections.close().await;
            Ok(())
        };
        destroy().await.map_err(|error: Error| error.with_operation("store::destroy"))
    }
}

impl Config {
    pub(crate) fn schema(&self) -> Result<Schema> {
        // Behind a pooler, assume no prepared statements until the pooler's support is known.
        let prepared = if self.behind_pooler { Prepared::Unnamed } else { Prepared::Named };
        Schema::new(&self.schema, prepared)
    }

    pub(crate) fn is_behind_pooler(&self) -> bool {
        self.behind_pooler
    }

    pub(crate) fn migrates(&self) -> bool {
        self.migrate
    }

    pub(crate) fn listens(&self) -> bool {
        !self.behind_pooler
    }

    pub(crate) fn poll_interval(&self) -> Duration {
        let usual = Duration::from_millis(if self.listens() { 1000 } else { 100 });
        self.poll_interval.unwrap_or(usual).max(Duration::from_millis(1))
    }

    /// Creates the connections. Does not contact the server yet.
    pub(crate) fn connect(&self) -> Result<Connections> {
        let url = match &self.source {
            Source::Pool(pool) => return Ok(Connections::external(pool.clone(), self.timeouts)),
            Source::Url(url) => url,
        };
        const LIKE: &str = "the database URL is invalid; its format is \
            postgres://user:password@host:5432/database";
        // The driver accepts any scheme.
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(Error::new(ErrorCode::ConfigInvalid, LIKE));
        }
        if url.contains("?pooler=") || url.contains("&pooler=") {
            let message = "`pooler` in the URL must be `transaction` or `session`";
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        let options: PgConnectOptions = url
            .parse()
            .map_err(|error| Error::new(ErrorCode::ConfigInvalid, LIKE).with_source(error))?;
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name("helix-agents"),
        };
        install_crypto_provider();
        // The store has no floating-point columns, and a pooler may reject this setting.
        let options = options.extra_float_digits(None);
        Ok(Connections::own(quiet(options), self.connections, self.setup(), self.timeouts))
    }

    /// Returns the statement that sets the server's timeout to the operation timeout. Behind a
    /// pooler it would also affect other clients of the connection, so there is none.
    fn setup(&self) -> Option<String> {
        let timeout = self.timeouts.operation.as_millis().clamp(1, i32::MAX.unsigned_abs().into());
        (!self.behind_pooler).then(|| format!("SET statement_timeout = {timeout}"))
    }
}

/// Installs a default crypto provider for the process unless it has one. If a program links several
/// providers and none is installed, the driver's certificate checks panic.
fn install_crypto_provider() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have installed one meanwhile, which is equally good.
        drop(aws_lc_rs::default_provider().install_default());
    }
}

/// Splits the store's parameters off a URL.
fn take_store_parameters(url: &str) -> (String, Vec<(&str, &str)>) {
    let Some((base, parameters)) = url.split_once('?') else {
        return (url.to_owned(), Vec::new());
    };
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for parameter in parameters.split('&') {
        match parameter.split_once('=') {
            Some(pair @ ("schema", _)) => own.push(pair),
            Some(pair @ ("pooler", kind)) if POOLERS.contains(&kind) => own.push(pair),
            _ => others.push(parameter),
        }
    }
    let url =
        if others.is_empty() { base.to_owned() } else { format!("{base}?{}", others.join("&")) };
    (url, own)
}

/// Disables statement logging: the statements' texts are constant, and errors are reported
/// separately.
fn quiet(options: PgConnectOptions) -> PgConnectOptions {
    use sqlx::ConnectOptions as _;
    options.disable_statement_logging()
}
