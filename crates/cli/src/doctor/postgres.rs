//! Checks a PostgreSQL database.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use helix_agents::error::ErrorCode;
use helix_agents::guarantee::Guarantee;
use helix_agents::prelude::PostgresStore;
use helix_agents::store_postgres::Inspection;
use serde::Serialize;

use super::finding::{Failed, Findings};
use super::page::Page;
use super::stores::by_status;
use crate::storage;
use crate::text::{bytes, count};

/// The PostgreSQL section of the report.
#[derive(Debug, Serialize)]
pub(super) struct Postgres {
    /// The URL without its password.
    url: String,
    /// The error if the database cannot be used.
    error: Option<Failed>,
    /// The contents, if the database can be used and has tables.
    database: Option<Database>,
    /// The approximate number of chunks retained per stream.
    stream_retention: u64,
    guarantees: Vec<Guarantee>,
}

/// The settings and contents of the database.
#[derive(Debug, Serialize)]
struct Database {
    server: String,
    schema: u32,
    newest_schema: u32,
    fsync: bool,
    synchronous_commit: String,
    bytes: u64,
    chunks: u64,
    /// The number of sessions by status, with the names of `helix sessions list`.
    sessions: BTreeMap<&'static str, u64>,
}

impl Postgres {
    pub(super) async fn check(url: &str, findings: &mut Findings) -> Self {
        let builder = PostgresStore::builder(url).connections(1);
        let inspected = builder.inspect().await;
        let shown = storage::shown(Path::new(url));
        let error = inspected.as_ref().err().map(Failed::from);
        if let Err(error) = &inspected {
            let message = format!("{shown}: {}", error.message());
            findings.problem(error.code().as_str(), message, remedy(error.code()));
        }
        let found = inspected.ok().flatten();
        let guarantees =
            found.as_ref().map(|inspection| inspection.guarantees.clone()).unwrap_or_default();
        if let Some(broken) = guarantees.iter().find(|guarantee| !guarantee.holds) {
            findings.advise(
                "server_not_durable",
                format!("{shown}: {}", broken.reason),
                "set fsync and synchronous_commit to on, unless losing the latest events is acceptable",
            );
        }
        if let Some(found) = found.as_ref().filter(|inspection| inspection.stopped > 0) {
            super::stores::advise_to_resume(found.stopped, findings);
        }
        Self {
            url: shown,
            error,
            database: found.map(Database::from),
            stream_retention: builder.kept_chunks(),
            guarantees,
        }
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.row("postgres", &self.url)?;
        let state = match (&self.database, &self.error) {
            (Some(database), _) => database.to_string(),
            (None, Some(failed)) => failed.message.clone(),
            (None, None) => {
                "no tables yet: the first run or `helix migrate` creates them".to_owned()
            }
        };
        page.row("", &state)?;
        if let Some(database) =
            self.database.as_ref().filter(|database| database.schema == database.newest_schema)
        {
            page.row("", &super::stores::in_words(&database.sessions))?;
        }
        let kept = self.stream_retention;
        page.row(
            "",
            &format!("each stream retains about {kept} chunks; logs are never truncated"),
        )?;
        self.guarantees.iter().try_for_each(|guarantee| page.guarantee(guarantee))
    }
}

/// The remedy for a database error.
fn remedy(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::StoreUnavailable => "start the server, or correct its URL in --db or HELIX_DB",
        ErrorCode::ConfigInvalid => "correct the user, password or database in --db or HELIX_DB",
        ErrorCode::StoreNewer => "upgrade helix, or choose another database with --db or HELIX_DB",
        ErrorCode::StoreReadOnly => "use the primary server, or grant the user write access",
        ErrorCode::StoreForeign => "choose another database with --db or HELIX_DB",
        _ => "check the server's log, or choose another database with --db or HELIX_DB",
    }
}

impl From<Inspection> for Database {
    fn from(found: Inspection) -> Self {
        Self {
            schema: found.schema.unwrap_or_default(),
            newest_schema: found.newest_schema,
            sessions: by_status(found.running, found.stopped, &found.ended),
            server: found.server,
            fsync: found.fsync,
            synchronous_commit: found.synchronous_commit,
            bytes: found.bytes,
            chunks: found.chunks,
        }
    }
}

impl std::fmt::Display for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.schema, self.newest_schema) {
            (schema, newest) if schema == newest => write!(f, "schema {schema}")?,
            (schema, newest) => {
                write!(f, "schema {schema}, which the next run upgrades to {newest}")?
            }
        }
        let (size, chunks) = (bytes(self.bytes), count(self.chunks, "chunk"));
        let (fsync, commit) = (if self.fsync { "on" } else { "off" }, &self.synchronous_commit);
        write!(f, ", {size}, {chunks} of streams; PostgreSQL {}, fsync {fsync}, ", self.server)?;
        write!(f, "synchronous_commit {commit}")
    }
}
