//! Options.

use std::fmt;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use sqlx::postgres::{PgConnectOptions, PgPool};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::connections::{Connections, Patience};
use crate::sql::{Prepared, Schema};
use crate::{Inspection, PostgresStore, inspect, migrations};

/// The schema that a store's tables are in, unless told.
pub const DEFAULT_SCHEMA: &str = "helix_agents";

/// What `pooler=…` in a URL can say: when the pooler lends a connection to somebody else.
const POOLERS: [&str; 2] = ["transaction", "session"];

/// Options for opening a [`PostgresStore`].
#[derive(Debug, Clone)]
#[must_use]
pub struct PostgresBuilder {
    pub(crate) config: Config,
}

/// What the builder collects.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    source: Source,
    schema: String,
    connections: usize,
    patience: Patience,
    migrate: bool,
    behind_pooler: bool,
    poll_interval: Option<Duration>,
    pub(crate) stream_retention: u64,
}

/// How to reach the server.
#[derive(Clone)]
enum Source {
    Url(String),
    Pool(PgPool),
}

/// Without the password.
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
        let (url, ours) = take_ours(url);
        let mut builder = Self::new(Source::Url(url));
        for (name, value) in ours {
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
        let patience =
            Patience { connection: Duration::from_secs(10), operation: Duration::from_secs(30) };
        Self {
            config: Config {
                source,
                schema: DEFAULT_SCHEMA.to_owned(),
                connections: 16,
                patience,
                migrate: true,
                behind_pooler: false,
                poll_interval: None,
                stream_retention: 100_000,
            },
        }
    }

    /// The schema of the database that the tables are in. What the URL says as `?schema=name`, or [`DEFAULT_SCHEMA`],
    /// unless told. Stores in different schemas know nothing of each other.
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.config.schema = schema.into();
        self
    }

    /// The most connections that the store opens, beside the one on which it listens; at least one. 16 unless told.
    /// A pool that was brought has its own limit.
    pub fn connections(mut self, most: usize) -> Self {
        self.config.connections = most;
        self
    }

    /// How long to wait for a connection to be free, or made, before
    /// [`StoreBusy`](ErrorCode::StoreBusy) or [`StoreUnavailable`](ErrorCode::StoreUnavailable). Ten seconds unless
    /// told.
    pub fn connection_timeout(mut self, timeout: Duration) -> Self {
        self.config.patience.connection = timeout;
        self
    }

    /// How long one operation may take before [`StoreUnavailable`](ErrorCode::StoreUnavailable). The server gives it up
    /// then, too, unless the connection is not the store's own. 30 seconds unless told.
    pub fn operation_timeout(mut self, timeout: Duration) -> Self {
        self.config.patience.operation = timeout;
        self
    }

    /// About how many chunks of each stream are kept; older ones are trimmed, from time to time. At least one.
    /// 100,000 unless told.
    pub fn stream_retention(mut self, chunks: u64) -> Self {
        self.config.stream_retention = chunks;
        self
    }

    /// How often to look for chunks that other processes wrote, while anybody reads a stream. What this process writes
    /// is seen at once, and what others write when the server notifies of it; this finds what no notification told of.
    /// One second unless told, and a tenth [behind a pooler](Self::behind_transaction_pooler).
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.config.poll_interval = Some(interval);
        self
    }

    /// Whether the URL is that of a pooler which lends a connection for one transaction, such as PgBouncer in
    /// transaction mode; `?pooler=transaction` in the URL says so, too. It is not unless told, and has to be told: through
    /// such a pooler statements that others have prepared could be carried out instead of the store's.
    ///
    /// The store then leaves no settings on connections and does not `LISTEN`, which such a pooler cannot do: readers of
    /// streams poll. When it is opened it finds out whether the pooler carries prepared statements from one connection to
    /// another (PgBouncer since 1.21, if `max_prepared_statements` is not 0). Otherwise each statement is prepared anew in a
    /// transaction of its own, which makes four round trips of one.
    pub fn behind_transaction_pooler(mut self, behind: bool) -> Self {
        self.config.behind_pooler = behind;
        self
    }

    /// Whether opening makes the tables, and brings older ones up to date. Without it opening needs no right to create
    /// anything, and fails if somebody else has not done it before (`helix migrate`, or [`migrate`](Self::migrate)).
    /// It does unless told.
    pub fn migrate_on_open(mut self, migrate: bool) -> Self {
        self.config.migrate = migrate;
        self
    }

    /// About how many chunks of each stream are kept.
    pub fn kept_chunks(&self) -> u64 {
        self.config.stream_retention.max(1)
    }

    /// Opens the store.
    ///
    /// # Errors
    /// [`ConfigInvalid`](ErrorCode::ConfigInvalid) for a URL, user, password or database that cannot be;
    /// [`StoreUnavailable`](ErrorCode::StoreUnavailable) if the server cannot be reached;
    /// [`StoreForeign`](ErrorCode::StoreForeign) if another program's tables are in the schema;
    /// [`StoreNewer`](ErrorCode::StoreNewer) if a newer version wrote it; [`StoreOlder`](ErrorCode::StoreOlder) if the
    /// tables are not up to date and were not to be changed; [`StoreReadOnly`](ErrorCode::StoreReadOnly) if the server
    /// is a standby or the user may not write; [`Unsupported`](ErrorCode::Unsupported) for a server that is too old.
    pub async fn open(self) -> Result<PostgresStore> {
        let result = PostgresStore::start(&self.config).await;
        result.map_err(|error| error.with_operation("store::open"))
    }

    /// Makes the tables, or brings older ones up to date; returns the number of the schema before and after.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn migrate(self) -> Result<(u32, u32)> {
        let migrate = async || {
            let (connections, schema) = (self.config.connect()?, self.config.schema()?);
            let before = migrations::run(&connections, &schema).await?;
            connections.close().await;
            Ok((before, migrations::newest()))
        };
        migrate().await.map_err(|error: Error| error.with_operation("store::migrate"))
    }

    /// Looks at the database without changing anything; none if the store has no schema there yet.
    ///
    /// # Errors
    /// As [`open`](Self::open), for a database that it would refuse.
    pub async fn inspect(&self) -> Result<Option<Inspection>> {
        let inspect = async || {
            let (connections, schema) = (self.config.connect()?, self.config.schema()?);
            let inspection = inspect::inspect(&connections, &schema).await?;
            connections.close().await;
            Ok(inspection)
        };
        inspect().await.map_err(|error: Error| error.with_operation("store::inspect"))
    }

    /// Removes the schema with everything in it, if it is a store's: for tests.
    ///
    /// # Errors
    /// As [`open`](Self::open).
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
        // Behind a pooler, until it is known what it can.
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

    /// Nothing is sent yet.
    pub(crate) fn connect(&self) -> Result<Connections> {
        let url = match &self.source {
            Source::Pool(pool) => return Ok(Connections::brought(pool.clone(), self.patience)),
            Source::Url(url) => url,
        };
        const LIKE: &str = "the URL of the database cannot be read; it is like \
            postgres://user:password@host:5432/database";
        // The driver takes any.
        if !["postgres://", "postgresql://"].iter().any(|it| url.starts_with(it)) {
            return Err(Error::new(ErrorCode::ConfigInvalid, LIKE));
        }
        if url.contains("?pooler=") || url.contains("&pooler=") {
            let message = "`pooler` in the URL is `transaction` or `session`";
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        let options: PgConnectOptions = url
            .parse()
            .map_err(|error| Error::new(ErrorCode::ConfigInvalid, LIKE).with_source(error))?;
        let options = match options.get_application_name() {
            Some(_) => options,
            None => options.application_name("helix-agents"),
        };
        choose_cryptography();
        // The store has no such numbers, and a pooler may refuse to set it.
        let options = options.extra_float_digits(None);
        Ok(Connections::own(quiet(options), self.connections, self.greeting(), self.patience))
    }

    /// The server gives up when we do. Behind a pooler the setting would be that of others, too.
    fn greeting(&self) -> Option<String> {
        let timeout = self.patience.operation.as_millis().clamp(1, i32::MAX.unsigned_abs().into());
        (!self.behind_pooler).then(|| format!("SET statement_timeout = {timeout}"))
    }
}

/// Where a program has several kinds of cryptography, the driver's checks of certificates panic unless the
/// process has chosen one; that is ours if nobody was first.
fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Somebody else may be faster; theirs is as good.
        drop(aws_lc_rs::default_provider().install_default());
    }
}

/// The URL without the parameters that are ours, and those.
fn take_ours(url: &str) -> (String, Vec<(&str, &str)>) {
    let Some((place, parameters)) = url.split_once('?') else {
        return (url.to_owned(), Vec::new());
    };
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    for parameter in parameters.split('&') {
        match parameter.split_once('=') {
            Some(pair @ ("schema", _)) => ours.push(pair),
            Some(pair @ ("pooler", kind)) if POOLERS.contains(&kind) => ours.push(pair),
            _ => others.push(parameter),
        }
    }
    let url =
        if others.is_empty() { place.to_owned() } else { format!("{place}?{}", others.join("&")) };
    (url, ours)
}

/// Statements are not logged: their texts never change, and errors have their own way.
fn quiet(options: PgConnectOptions) -> PgConnectOptions {
    use sqlx::ConnectOptions as _;
    options.disable_statement_logging()
}
