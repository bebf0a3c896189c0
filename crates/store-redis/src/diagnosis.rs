//! The state of a server, whether or not the store can use it, and what needs attention.

use serde::Serialize;

use helix_agents_core::error::{ErrorCode, ErrorRecord, Result};
use helix_agents_core::finding::Finding;
use helix_agents_core::guarantee::Guarantee;

use crate::settings::{Persistence, ServerSettings};
use crate::{Inspection, RedisBuilder};

/// The code of advice about the server's settings.
const SETTINGS: &str = "server_settings";

/// The state of a server and the guarantees of the store.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The error if the store cannot use the server.
    pub error: Option<ErrorRecord>,
    /// The settings and contents of the server, if it responds.
    pub server: Option<Inspection>,
    /// The approximate number of chunks that are kept per stream.
    pub stream_retention: u64,
    /// The guarantees of the store, if the server responds.
    pub guarantees: Vec<Guarantee>,
}

impl RedisBuilder {
    /// Inspects the server without changing anything. If [`open`](Self::open) would refuse the server,
    /// the error is in [`Diagnosis::error`] and in [`Diagnosis::findings`].
    pub async fn diagnose(&self) -> Diagnosis {
        Diagnosis::new(self.inspect().await, self.kept_chunks())
    }
}

impl Diagnosis {
    fn new(inspected: Result<Inspection>, stream_retention: u64) -> Self {
        let (server, error) = match inspected {
            Ok(server) => {
                let refused = server.check().err();
                (Some(server), refused)
            }
            Err(error) => (None, Some(error)),
        };
        let guarantees = server.as_ref().map(Inspection::guarantees).unwrap_or_default();
        let error = error.map(|error| error.record());
        Self { error, server, stream_retention, guarantees }
    }

    /// Returns what needs attention: problems that prevent agents from running with this server, and
    /// advice about its settings.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(error) = &self.error {
            let code = error.to_error(ErrorCode::Internal).code();
            findings.push(Finding::problem(error.code.clone(), &*error.message, remedy(code)));
        }
        if let Some(server) = &self.server {
            findings.extend(of_persistence(server.settings.persistence));
            findings.extend(of_memory(&server.settings));
        }
        findings
    }
}

/// Returns advice about the events that a power loss or a restart loses.
fn of_persistence(persistence: Persistence) -> Option<Finding> {
    let (message, remedy) = match persistence {
        Persistence::Always => return None,
        Persistence::EverySecond => (
            "a power loss may lose the last second of appends",
            "set `appendfsync always`, unless this loss is acceptable",
        ),
        Persistence::SomeTime => (
            "a power loss may lose the last half minute of appends",
            "set `appendfsync everysec`, or `always` to keep all of them",
        ),
        Persistence::Unknown => (
            "the server does not reveal how often it syncs its append-only file to the disk",
            "check its `appendfsync` setting",
        ),
        Persistence::Snapshots => (
            "a restart of the server loses all appends since its last snapshot",
            "set `appendonly yes`",
        ),
    };
    Some(Finding::advice(SETTINGS, message, remedy))
}

/// Returns advice about the memory limit.
fn of_memory(settings: &ServerSettings) -> Option<Finding> {
    let (message, remedy) = if settings.max_memory == 0 {
        (
            "the server may use all memory of its machine",
            "set `maxmemory`, so that appends fail before the system kills the server",
        )
    } else if settings.used_memory / 9 > settings.max_memory / 10 {
        (
            "the server uses more than 90 % of its `maxmemory`",
            "increase it, or delete sessions that are no longer needed",
        )
    } else {
        return None;
    };
    Some(Finding::advice(SETTINGS, message, remedy))
}

/// Returns the remedy for an error of a server.
fn remedy(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::StoreUnavailable => "start the server, or correct the URL",
        ErrorCode::ConfigInvalid => {
            "change the server's settings as stated, or correct the URL, user or password"
        }
        ErrorCode::StoreNewer => "upgrade this program, or choose another prefix",
        ErrorCode::StoreReadOnly => "use the primary server",
        ErrorCode::StoreForeign => "choose another prefix in the URL: …?prefix=NAME",
        _ => "check the server's log, or choose another server",
    }
}

#[cfg(test)]
mod tests;
