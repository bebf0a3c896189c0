//! Options of the PostgreSQL store, and the connections that they describe.

use std::fmt;
use std::time::Duration;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use sqlx::postgres::{PgConnectOptions, PgPool};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::connections::{Connections, Timeouts};
use crate::sql::{Prepared, Schema};

/// The default schema of a store's tables.
pub const DEFAULT_SCHEMA: &str = "helix_agents";

/// The values of `pooler=…` in a URL: the unit of work for which the pooler lends out a connection.
const POOLERS: [&str; 2] = ["transaction", "session"];

/// The options with which a database is opened.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    source: Source,
    pub(crate) schema: String,
    pub(crate) connections: usize,
    pub(crate) timeouts: Timeouts,
    pub(crate) migrate: bool,
    pub(crate) behind_pooler: bool,
    pub(crate) poll_interval: Option<Duration>,
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

impl Config {
    /// Returns the default options for the server at a URL, which may contain some of the store's.
    pub(crate) fn of_url(url: &str) -> Self {
        let (url, parameters) = take_store_parameters(url);
        let mut config = Self::new(Source::Url(url));
        for (name, value) in parameters {
            match name {
                "schema" => value.clone_into(&mut config.schema),
                _ => config.behind_pooler = value == POOLERS[0],
            }
        }
        config
    }

    /// Returns the default options for a pool.
    pub(crate) fn of_pool(pool: PgPool) -> Self {
        Self::new(Source::Pool(pool))
    }

    fn new(source: Source) -> Self {
        let timeouts =
            Timeouts { connection: Duration::from_secs(10), operation: Duration::from_secs(30) };
        Self {
            source,
            schema: DEFAULT_SCHEMA.to_owned(),
            connections: 16,
            timeouts,
            migrate: true,
            behind_pooler: false,
            poll_interval: None,
            stream_retention: 100_000,
        }
    }

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
