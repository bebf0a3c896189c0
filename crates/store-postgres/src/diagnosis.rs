//! The state of a store database, whether or not it can be used, and what needs attention.

use serde::Serialize;

use helix_agents_core::error::{ErrorCode, ErrorRecord, Result};
use helix_agents_core::finding::Finding;
use helix_agents_core::guarantee::Guarantee;

use crate::{Inspection, PostgresBuilder};

/// The state of a store database and the guarantees of the store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The error if the database cannot be used.
    pub error: Option<ErrorRecord>,
    /// The contents of the database, if it can be used and has tables.
    pub database: Option<Inspection>,
    /// The approximate number of chunks that are kept per stream.
    pub stream_retention: u64,
    /// The guarantees of the store, if the server's settings are known.
    pub guarantees: Vec<Guarantee>,
}

impl PostgresBuilder {
    /// Inspects the database without changing it. A database that [`open`](Self::open) would refuse is
    /// part of the result, and [`Diagnosis::findings`] returns what needs attention.
    pub async fn diagnose(&self) -> Diagnosis {
        Diagnosis::new(self.inspect().await, self.kept_chunks())
    }
}

impl Diagnosis {
    fn new(inspected: Result<Option<Inspection>>, stream_retention: u64) -> Self {
        let (database, error) = match inspected {
            Ok(database) => (database, None),
            Err(error) => (None, Some(error.record())),
        };
        let guarantees =
            database.as_ref().map(|found| found.guarantees.clone()).unwrap_or_default();
        Self { error, database, stream_retention, guarantees }
    }

    /// Returns what needs attention: problems that prevent agents from running with this database,
    /// and advice about the server's settings and the sessions.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(error) = &self.error {
            let code = error.to_error(ErrorCode::Internal).code();
            findings.push(Finding::problem(error.code.clone(), &*error.message, remedy(code)));
        }
        if let Some(broken) = self.guarantees.iter().find(|guarantee| !guarantee.holds) {
            findings.push(Finding::advice(
                "server_not_durable",
                &*broken.reason,
                "set fsync and synchronous_commit to on, unless losing the latest events is \
                 acceptable",
            ));
        }
        findings.extend(self.database.as_ref().and_then(|found| found.sessions.finding()));
        findings
    }
}

/// Returns the remedy for an error of a database.
fn remedy(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::StoreUnavailable => "start the server, or correct the URL",
        ErrorCode::ConfigInvalid => "correct the user, password or database in the URL",
        ErrorCode::StoreNewer => "upgrade this program, or choose another database",
        ErrorCode::StoreReadOnly => "use the primary server, or grant the user write access",
        ErrorCode::StoreForeign => "choose another database or schema",
        _ => "check the server's log, or choose another database",
    }
}

#[cfg(test)]
mod tests;
