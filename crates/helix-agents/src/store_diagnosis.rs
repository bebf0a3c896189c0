//! The state of the store at a URL, and what needs attention.

use helix_agents_core::error::Result;
use helix_agents_core::finding::Finding;
use serde::Serialize;

use crate::store_url::StoreUrl;

/// The state of the store at a URL, from [`StoreUrl::diagnose`]. It is serialized as an object with the
/// name of the store as its only member.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::allow_attributes, reason = "the enabled features decide which variants are large")]
#[allow(clippy::large_enum_variant, reason = "a diagnosis is created once and not kept")]
#[non_exhaustive]
pub enum StoreDiagnosis {
    /// A SQLite file.
    #[cfg(feature = "store-sqlite")]
    Sqlite(helix_agents_store_sqlite::Diagnosis),
    /// A PostgreSQL database.
    #[cfg(feature = "store-postgres")]
    Postgres {
        /// The URL without its password.
        url: String,
        /// The state of the database.
        #[serde(flatten)]
        diagnosis: helix_agents_store_postgres::Diagnosis,
    },
    /// A Redis server.
    #[cfg(feature = "store-redis")]
    Redis {
        /// The URL without its password.
        url: String,
        /// The state of the server.
        #[serde(flatten)]
        diagnosis: helix_agents_store_redis::Diagnosis,
    },
    /// A store in memory, which needs no check.
    Memory,
}

impl StoreDiagnosis {
    /// Returns what needs attention: problems that prevent agents from running with this store, and
    /// advice.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        match self {
            #[cfg(feature = "store-sqlite")]
            Self::Sqlite(diagnosis) => diagnosis.findings(),
            #[cfg(feature = "store-postgres")]
            Self::Postgres { url, diagnosis } => about(url, diagnosis.findings()),
            #[cfg(feature = "store-redis")]
            Self::Redis { url, diagnosis } => about(url, diagnosis.findings()),
            Self::Memory => Vec::new(),
        }
    }
}

#[cfg(any(feature = "store-postgres", feature = "store-redis"))]
fn about(url: &str, findings: Vec<Finding>) -> Vec<Finding> {
    findings.into_iter().map(|finding| finding.with_subject(url)).collect()
}

impl StoreUrl {
    /// Inspects the store without creating or changing anything. If the store cannot be used, the error is
    /// in the result and in [`StoreDiagnosis::findings`].
    ///
    /// # Errors
    /// Returns [`ErrorCode::Unsupported`](helix_agents_core::error::ErrorCode::Unsupported) if the feature of the store
    /// is not enabled, and [`StoreUnavailable`](helix_agents_core::error::ErrorCode::StoreUnavailable) if the operating
    /// system cannot start a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "store-sqlite")]
    /// # #[tokio::main]
    /// # async fn main() -> helix_agents::Result<()> {
    /// use helix_agents::StoreUrl;
    ///
    /// let diagnosis = StoreUrl::parse("sqlite:/nowhere/agents.db")?.diagnose().await?;
    /// for finding in diagnosis.findings() {
    ///     eprintln!("{}: {} ({})", finding.code, finding.message, finding.remedy);
    /// }
    /// # assert!(diagnosis.findings().iter().any(|finding| finding.is_problem()));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(feature = "store-sqlite"))]
    /// # fn main() {}
    /// ```
    #[expect(clippy::allow_attributes, reason = "the enabled features decide which code is used")]
    #[allow(unused_variables, unreachable_patterns, clippy::unused_async, reason = "likewise")]
    pub async fn diagnose(&self) -> Result<StoreDiagnosis> {
        Ok(match self {
            Self::Memory => StoreDiagnosis::Memory,
            #[cfg(feature = "store-sqlite")]
            Self::Sqlite(file) => StoreDiagnosis::Sqlite(
                helix_agents_store_sqlite::SqliteStore::builder(file).diagnose().await?,
            ),
            #[cfg(feature = "store-postgres")]
            Self::Postgres(url) => {
                let builder = helix_agents_store_postgres::PostgresStore::builder(url);
                let diagnosis = builder.connections(1).diagnose().await;
                StoreDiagnosis::Postgres { url: self.to_string(), diagnosis }
            }
            #[cfg(feature = "store-redis")]
            Self::Redis(url) => {
                let builder = helix_agents_store_redis::RedisStore::builder(url);
                let diagnosis = builder.diagnose().await;
                StoreDiagnosis::Redis { url: self.to_string(), diagnosis }
            }
            _ => return Err(self.without_feature()),
        })
    }
}
