//! Store URLs, and a function that opens the store at a URL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::any_store::AnyStore;

/// The supported URL forms, for error messages.
const FORMS: &str = "`memory:`, `sqlite:FILE`, `postgres://…` and `redis://…`";

/// Opens the store at a URL, with the default options.
///
/// | URL | store | feature |
/// |---|---|---|
/// | `memory:` | a new store in memory for each call | `store-memory` |
/// | `sqlite:FILE` | a SQLite file, created if it does not exist | `store-sqlite` |
/// | `postgres://…`, `postgresql://…` | a PostgreSQL database, in the schema `?schema=…` | `store-postgres` |
/// | `redis://…`, `rediss://…` | a Redis server, with the key prefix `?prefix=…` | `store-redis` |
///
/// # Errors
/// Returns [`ErrorCode::ConfigInvalid`] if the URL has none of these forms, [`ErrorCode::Unsupported`] if the feature
/// of the store is not enabled, and the errors of the store.
///
/// # Examples
///
/// ```
/// # #[cfg(all(feature = "store-memory", feature = "runtime-local", feature = "llm"))]
/// # #[tokio::main]
/// # async fn main() -> helix_agents::Result<()> {
/// use helix_agents::prelude::*;
///
/// let url = std::env::var("STORE_URL").unwrap_or("memory:".to_owned());
/// let store = helix_agents::open_store(&url).await?;
/// let runtime =
///     LocalRuntime::builder().store(store.clone()).llm(ProviderRegistry::from_env()?).build()?;
/// # runtime.shutdown().await;
/// store.close().await;
/// # Ok(())
/// # }
/// # #[cfg(not(all(feature = "store-memory", feature = "runtime-local", feature = "llm")))]
/// # fn main() {}
/// ```
pub async fn open_store(url: &str) -> Result<AnyStore> {
    StoreUrl::parse(url)?.open(&StoreOptions::new()).await
}

/// A parsed store URL. `Display` and `Debug` omit the password and all query parameters except `schema`, `prefix` and
/// `pooler`, so the text may not parse back to the same URL.
///
/// # Examples
///
/// ```
/// use helix_agents::StoreUrl;
///
/// # fn main() -> helix_agents::Result<()> {
/// let url = StoreUrl::parse("postgres://clerk:secret@db.example.com/sales?schema=agents")?;
/// assert_eq!(url.to_string(), "postgres://clerk@db.example.com/sales?schema=agents");
/// assert!(StoreUrl::parse("mysql://db.example.com/sales").is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreUrl {
    /// A new store in memory.
    Memory,
    /// The path of a SQLite file.
    Sqlite(PathBuf),
    /// The URL of a PostgreSQL database.
    Postgres(String),
    /// The URL of a Redis server.
    Redis(String),
}

/// The options for opening a store by its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreOptions {
    connections: Option<usize>,
    migrate: bool,
    busy_timeout: Option<Duration>,
    read_only: bool,
}

impl StoreOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new() -> Self {
        Self { connections: None, migrate: true, busy_timeout: None, read_only: false }
    }

    /// Sets the maximum number of connections to PostgreSQL. Defaults to the store's own default.
    #[must_use]
    pub fn connections(mut self, most: usize) -> Self {
        self.connections = Some(most);
        self
    }

    /// Sets whether the tables of PostgreSQL are created or upgraded. Default: `true`.
    #[must_use]
    pub fn migrate_on_open(mut self, migrate: bool) -> Self {
        self.migrate = migrate;
        self
    }

    /// Sets how long an operation waits for a SQLite file that another process has locked. Defaults to the store's own default.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = Some(timeout);
        self
    }

    /// Opens a SQLite file without write access. Other stores cannot be opened like this.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreUrl {
    /// Parses a URL in one of the forms that [`open_store`] lists. Parses all forms, even if the feature of the store is not enabled.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the URL has none of these forms. The message contains only its scheme.
    pub fn parse(url: &str) -> Result<Self> {
        let invalid = |problem: String| {
            let message = format!("{problem}; the URL of a store has one of the forms {FORMS}");
            Err(Error::new(ErrorCode::ConfigInvalid, message))
        };
        let Some((scheme, rest)) = url.split_once(':') else {
            return invalid("the URL of the store has no scheme".to_owned());
        };
        match (scheme, rest) {
            ("memory", "") => Ok(Self::Memory),
            ("sqlite", file) if !file.trim_start_matches('/').is_empty() => {
                Ok(Self::Sqlite(file.strip_prefix("//").unwrap_or(file).into()))
            }
            ("postgres" | "postgresql", rest) if rest.starts_with("//") => {
                Ok(Self::Postgres(url.to_owned()))
            }
            ("redis" | "rediss", rest) if rest.starts_with("//") => Ok(Self::Redis(url.to_owned())),
            ("memory" | "sqlite" | "postgres" | "postgresql" | "redis" | "rediss", _) => {
                invalid(format!("the URL of the store is incomplete after `{scheme}:`"))
            }
            _ => invalid(format!("no store has the scheme `{}`", scheme.escape_default())),
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Unsupported`] if the feature of the store is not enabled or a store other than a SQLite
    /// file is opened read-only, and the errors of the store.
    #[expect(clippy::allow_attributes, reason = "it depends on the features which code is used")]
    #[allow(unused_variables, unreachable_patterns, clippy::unused_async, reason = "likewise")]
    pub async fn open(&self, options: &StoreOptions) -> Result<AnyStore> {
        if options.read_only && !matches!(self, Self::Sqlite(_)) {
            let message = "only a SQLite file can be opened read-only";
            return Err(Error::new(ErrorCode::Unsupported, message).with_context("url", self));
        }
        match self {
            #[cfg(feature = "store-memory")]
            Self::Memory => Ok(AnyStore::new(helix_agents_store_memory::MemoryStore::new())),
            #[cfg(feature = "store-sqlite")]
            Self::Sqlite(file) => {
                let mut builder = helix_agents_store_sqlite::SqliteStore::builder(file);
                if let Some(timeout) = options.busy_timeout {
                    builder = builder.busy_timeout(timeout);
                }
                if options.read_only {
                    builder = builder.read_only();
                }
                let store = builder.open().await?;
                Ok(AnyStore::with_close(store, |store| async move { store.close().await }))
            }
            #[cfg(feature = "store-postgres")]
            Self::Postgres(url) => {
                let mut builder = helix_agents_store_postgres::PostgresStore::builder(url)
                    .migrate_on_open(options.migrate);
                if let Some(connections) = options.connections {
                    builder = builder.connections(connections);
                }
                let store = builder.open().await?;
                Ok(AnyStore::with_close(store, |store| async move { store.close().await }))
            }
            #[cfg(feature = "store-redis")]
            Self::Redis(url) => {
                let store = helix_agents_store_redis::RedisStore::open(url).await?;
                Ok(AnyStore::with_close(store, |store| async move { store.close().await }))
            }
            _ => Err(self.without_feature()),
        }
    }

    /// Returns the error for a store whose feature is not enabled.
    pub(crate) fn without_feature(&self) -> Error {
        let (store, feature) = match self {
            Self::Memory => ("in-memory stores", "store-memory"),
            Self::Sqlite(_) => ("SQLite", "store-sqlite"),
            Self::Postgres(_) => ("PostgreSQL", "store-postgres"),
            Self::Redis(_) => ("Redis", "store-redis"),
        };
        let message = format!(
            "this program was built without {store}: enable the feature `{feature}` of helix-agents"
        );
        Error::new(ErrorCode::Unsupported, message).with_context("url", self)
    }
}

impl FromStr for StoreUrl {
    type Err = Error;

    fn from_str(url: &str) -> Result<Self> {
        Self::parse(url)
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite(file) => write!(f, "sqlite:{}", file.display()),
            Self::Postgres(url) | Self::Redis(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StoreUrl").field(&self.to_string()).finish()
    }
}

/// Removes secrets from a URL. Query parameters may contain a password, too, so only those that identify
/// the location of the sessions and the kind of connection are kept.
fn without_password(url: &str) -> String {
    let (url, options) = url.split_once('?').unwrap_or((url, ""));
    let is_shown = |option: &&str| {
        let (name, _) = option.split_once('=').unwrap_or((option, ""));
        matches!(name, "schema" | "prefix" | "pooler")
    };
    let mut shown = without_user_password(url);
    for (number, option) in options.split('&').filter(is_shown).enumerate() {
        shown.push(if number == 0 { '?' } else { '&' });
        shown.push_str(option);
    }
    shown
}

fn without_user_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let Some((user, place)) = rest.rsplit_once('@') else { return url.to_owned() };
    let user = user.split_once(':').map_or(user, |(user, _)| user);
    format!("{scheme}://{user}@{place}")
}

#[cfg(test)]
mod tests;
