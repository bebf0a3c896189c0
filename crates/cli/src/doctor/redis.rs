//! Checks a Redis server.

use std::io;
use std::path::Path;

use helix_agents::error::ErrorCode;
use helix_agents::guarantee::Guarantee;
use helix_agents::prelude::RedisStore;
use helix_agents::store_redis::Inspection;
use serde::Serialize;

use super::finding::{Failed, Findings};
use super::page::Page;
use crate::storage;
use crate::text::{bytes, count};

/// The Redis section of the report.
#[derive(Debug, Serialize)]
pub(super) struct Redis {
    /// The URL without its password.
    url: String,
    /// The error if the server cannot be used.
    error: Option<Failed>,
    /// The server's settings and contents, if it responds.
    server: Option<Server>,
    /// The approximate number of chunks retained per stream.
    stream_retention: u64,
    guarantees: Vec<Guarantee>,
}

/// The settings and contents of a server.
#[derive(Debug, Serialize)]
struct Server {
    version: String,
    cluster: bool,
    /// The schema version of the data; `None` if there are no sessions yet.
    schema: Option<u32>,
    newest_schema: u32,
    persistence: String,
    eviction: String,
    used_memory: u64,
    max_memory: u64,
    replicas: u32,
    sessions: u64,
}

impl Redis {
    pub(super) async fn check(url: &str, findings: &mut Findings) -> Self {
        let builder = RedisStore::builder(url);
        let shown = storage::shown(Path::new(url));
        let inspected = builder.inspect().await;
        let refused = inspected.as_ref().map(Inspection::check);
        let error = match &refused {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error),
            Err(error) => Some(*error),
        };
        if let Some(error) = error {
            let message = format!("{shown}: {}", error.message());
            findings.problem(error.code().as_str(), message, remedy(error.code()));
        }
        let error = error.map(Failed::from);
        let found = inspected.ok();
        for (warning, remedy) in found.iter().flat_map(Inspection::warnings) {
            findings.advise("server_settings", format!("{shown}: {warning}"), remedy);
        }
        Self {
            url: shown,
            error,
            guarantees: found.as_ref().map(Inspection::guarantees).unwrap_or_default(),
            server: found.map(Server::from),
            stream_retention: builder.kept_chunks(),
        }
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.row("redis", &self.url)?;
        if let Some(failed) = &self.error {
            page.row("", &failed.message)?;
        }
        if let Some(server) = &self.server {
            page.row("", &server.to_string())?;
            page.row("", &format!("sessions: {}", server.sessions))?;
        }
        let kept = self.stream_retention;
        page.row(
            "",
            &format!("each stream retains about {kept} chunks; logs are never truncated"),
        )?;
        self.guarantees.iter().try_for_each(|guarantee| page.guarantee(guarantee))
    }
}

/// The remedy for a server error.
fn remedy(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::StoreUnavailable => "start the server, or correct its URL in --db or HELIX_DB",
        ErrorCode::ConfigInvalid => {
            "change the server's settings as stated, or correct the URL, user or password in --db or HELIX_DB"
        }
        ErrorCode::StoreNewer => "upgrade helix, or choose another prefix in --db or HELIX_DB",
        ErrorCode::StoreReadOnly => "use the primary server in --db or HELIX_DB",
        ErrorCode::StoreForeign => "choose another prefix in --db or HELIX_DB: …?prefix=NAME",
        _ => "check the server's log, or choose another server with --db or HELIX_DB",
    }
}

impl From<Inspection> for Server {
    fn from(found: Inspection) -> Self {
        let settings = found.settings;
        Self {
            persistence: settings.persistence.to_string(),
            version: settings.version,
            cluster: settings.is_cluster,
            eviction: settings.eviction,
            used_memory: settings.used_memory,
            max_memory: settings.max_memory,
            replicas: settings.replicas,
            schema: found.schema,
            newest_schema: found.newest_schema,
            sessions: found.sessions,
        }
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.cluster { "Redis Cluster" } else { "Redis" };
        write!(
            f,
            "{kind} {}, {}, maxmemory-policy {}",
            self.version, self.persistence, self.eviction
        )?;
        write!(f, ", {} used", bytes(self.used_memory))?;
        if self.max_memory > 0 {
            write!(f, " of {}", bytes(self.max_memory))?;
        }
        write!(f, ", {}", count(u64::from(self.replicas), "replica"))
    }
}
