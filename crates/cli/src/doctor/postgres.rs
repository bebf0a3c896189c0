//! The database of a server, if `--db` names one.

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
use super::stores::by_standing;
use crate::storage;
use crate::text::{bytes, count};

/// The database.
#[derive(Debug, Serialize)]
pub(super) struct Postgres {
    /// Without its password.
    url: String,
    /// Why it cannot be used, if so.
    error: Option<Failed>,
    /// What is in it, if it can be used and there are tables.
    database: Option<Database>,
    /// About how many chunks of each stream are kept.
    stream_retention: u64,
    guarantees: Vec<Guarantee>,
}

/// What is in the database.
#[derive(Debug, Serialize)]
struct Database {
    server: String,
    schema: u32,
    newest_schema: u32,
    fsync: bool,
    synchronous_commit: String,
    bytes: u64,
    chunks: u64,
    /// Sessions by how they stand, in the words of `helix sessions list`.
    sessions: BTreeMap<&'static str, u64>,
}

impl Postgres {
    pub(super) async fn look(url: &str, findings: &mut Findings) -> Self {
        let builder = PostgresStore::builder(url).connections(1);
        let looked = builder.inspect().await;
        let shown = storage::shown(Path::new(url));
        let error = looked.as_ref().err().map(Failed::from);
        if let Err(error) = &looked {
            let message = format!("{shown}: {}", error.message());
            findings.problem(error.code().as_str(), message, remedy(error.code()));
        }
        let found = looked.ok().flatten();
        let guarantees = found.as_ref().map(|it| it.guarantees.clone()).unwrap_or_default();
        if let Some(broken) = guarantees.iter().find(|it| !it.holds) {
            findings.advise(
                "server_not_durable",
                format!("{shown}: {}", broken.reason),
                "set fsync and synchronous_commit to on, unless losing the last moments is meant",
            );
        }
        if let Some(found) = found.as_ref().filter(|it| it.stopped > 0) {
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
                "no tables yet: the first run, or `helix migrate`, makes them".to_owned()
            }
        };
        page.row("", &state)?;
        if let Some(database) = self.database.as_ref().filter(|it| it.schema == it.newest_schema) {
            page.row("", &super::stores::in_words(&database.sessions))?;
        }
        let kept = self.stream_retention;
        page.row("", &format!("streams keep about {kept} chunks each; logs keep everything"))?;
        self.guarantees.iter().try_for_each(|guarantee| page.guarantee(guarantee))
    }
}

/// What to do when the database cannot be used.
fn remedy(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::StoreUnavailable => {
            "start the server, or correct its address in --db or HELIX_DB"
        }
        ErrorCode::ConfigInvalid => "correct the user, password or database in --db or HELIX_DB",
        ErrorCode::StoreNewer => "upgrade helix, or name another database with --db or HELIX_DB",
        ErrorCode::StoreReadOnly => "name the primary server, or give the user the right to write",
        ErrorCode::StoreForeign => "name another database with --db or HELIX_DB",
        _ => "look at the server's log, or name another database with --db or HELIX_DB",
    }
}

impl From<Inspection> for Database {
    fn from(found: Inspection) -> Self {
        Self {
            schema: found.schema.unwrap_or_default(),
            newest_schema: found.newest_schema,
            sessions: by_standing(found.running, found.stopped, &found.ended),
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
            (schema, newest) => write!(f, "schema {schema}, which the next run makes {newest}")?,
        }
        let (size, chunks) = (bytes(self.bytes), count(self.chunks, "chunk"));
        let (fsync, commit) = (if self.fsync { "on" } else { "off" }, &self.synchronous_commit);
        write!(f, ", {size}, {chunks} of streams; PostgreSQL {}, fsync {fsync}, ", self.server)?;
        write!(f, "synchronous_commit {commit}")
    }
}
