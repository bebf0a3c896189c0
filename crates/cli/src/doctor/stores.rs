//! Checks the store of the sessions and shows its guarantees.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use helix_agents::StoreUrl;
use helix_agents::error::ErrorCode;
use helix_agents::guarantee::Guarantee;
use helix_agents::prelude::{MemoryStore, SqliteStore};
use helix_agents::store::{SessionStatus, StateStore as _};
use helix_agents::store_sqlite::Inspection;
use serde::Serialize;

use super::disk::Folder;
use super::finding::{Failed, Findings, remedy_of_database};
use super::page::Page;
use super::postgres::Postgres;
use super::redis::Redis;
use crate::storage;
use crate::text::{bytes, count};

/// The name of the runtime that needs no separate workers.
const LOCAL: &str = "local";

/// The free disk space in bytes below which the report gives advice.
const LITTLE: u64 = 100 * 1024 * 1024;

/// The stores section of the report.
#[derive(Debug, Serialize)]
pub(super) struct Stores {
    /// The SQLite file, if `--db` names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    sqlite: Option<Sqlite>,
    /// The PostgreSQL database, if `--db` names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    postgres: Option<Postgres>,
    /// The Redis server, if `--db` names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    redis: Option<Redis>,
    memory: Memory,
}

/// A SQLite database.
#[derive(Debug, Serialize)]
struct Sqlite {
    path: PathBuf,
    exists: bool,
    /// The error if the file cannot be used.
    error: Option<Failed>,
    /// The contents, if the file can be used.
    file: Option<File>,
    folder: Folder,
    /// The approximate number of chunks retained per stream.
    stream_retention: u64,
    guarantees: Vec<Guarantee>,
}

/// The settings and contents of a SQLite file.
#[derive(Debug, Serialize)]
struct File {
    schema: u32,
    newest_schema: u32,
    journal_mode: String,
    bytes: u64,
    chunks: u64,
    /// The number of sessions by status, with the names of `helix sessions list`.
    sessions: BTreeMap<&'static str, u64>,
}

/// The in-memory store, for programs that embed the library; `helix` does not use it.
#[derive(Debug, Serialize)]
struct Memory {
    guarantees: Vec<Guarantee>,
}

impl Stores {
    pub(super) async fn check(db: &Path, findings: &mut Findings) -> Self {
        let memory = Memory { guarantees: MemoryStore::new().guarantees() };
        let mut stores = Self { sqlite: None, postgres: None, redis: None, memory };
        match storage::location(db) {
            StoreUrl::Sqlite(file) => stores.sqlite = Some(Sqlite::check(&file, findings).await),
            StoreUrl::Postgres(url) => {
                stores.postgres = Some(Postgres::check(&url, findings).await);
            }
            StoreUrl::Redis(url) => stores.redis = Some(Redis::check(&url, findings).await),
            _ => {}
        }
        stores
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.heading("Stores")?;
        self.sqlite.iter().try_for_each(|sqlite| sqlite.show(page))?;
        self.postgres.iter().try_for_each(|postgres| postgres.show(page))?;
        self.redis.iter().try_for_each(|redis| redis.show(page))?;
        page.row("memory", "for embedding programs; `helix` stores sessions in the database")?;
        self.memory.guarantees.iter().try_for_each(|guarantee| page.guarantee(guarantee))
    }
}

impl Sqlite {
    async fn check(db: &Path, findings: &mut Findings) -> Self {
        let builder = SqliteStore::builder(db);
        let folder = Folder::of(db);
        let inspected = builder.inspect().await;
        let error = inspected.as_ref().err().map(Failed::from);
        if let Err(error) = &inspected {
            let message = format!("{}: {}", db.display(), error.message());
            findings.problem(error.code().as_str(), message, remedy_of_database(error.code()));
        } else {
            check_folder(&folder, findings);
        }
        let found = inspected.ok().flatten();
        if let Some(found) = &found {
            check_file(db, found, findings);
        }
        Self {
            path: std::path::absolute(db).unwrap_or_else(|_| db.to_owned()),
            exists: db.exists(),
            error,
            file: found.map(File::from),
            folder,
            stream_retention: builder.kept_chunks(),
            guarantees: builder.guarantees(),
        }
    }

    fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.row("sqlite", &self.path.display().to_string())?;
        let state = match (&self.file, &self.error) {
            (Some(file), _) => file.to_string(),
            (None, Some(failed)) => failed.message.clone(),
            (None, None) => "does not exist yet: the first run creates it".to_owned(),
        };
        page.row("", &state)?;
        if let Some(file) = self.file.as_ref().filter(|file| file.schema == file.newest_schema) {
            page.row("", &in_words(&file.sessions))?;
        }
        let folder = &self.folder;
        let free =
            folder.free_bytes.map_or_else(String::new, |free| format!(", {} free", bytes(free)));
        let writable = if folder.writable { "writable" } else { "not writable" };
        page.row("", &format!("folder {writable}{free}"))?;
        let kept = self.stream_retention;
        page.row(
            "",
            &format!("each stream retains about {kept} chunks; logs are never truncated"),
        )?;
        for guarantee in &self.guarantees {
            page.guarantee(guarantee)?;
        }
        Ok(())
    }
}

/// Checks that the folder exists and is writable, and reports risks of its disk.
fn check_folder(folder: &Folder, findings: &mut Findings) {
    let path = folder.path.display();
    if !folder.exists {
        let code = ErrorCode::ConfigInvalid;
        let message = format!("the folder of the database, {path}, does not exist");
        findings.problem(code.as_str(), message, remedy_of_database(code));
    } else if !folder.writable {
        let code = ErrorCode::StoreReadOnly;
        let message = format!("the folder of the database, {path}, is not writable");
        findings.problem(code.as_str(), message, remedy_of_database(code));
    }
    if let Some(name) = folder.network_file_system {
        findings.advise(
            "network_file_system",
            format!("the folder of the database, {path}, is on a network file system ({name})"),
            "choose a file on a local disk with --db or HELIX_DB: SQLite's locks need one",
        );
    }
    if let Some(free) = folder.free_bytes.filter(|free| *free < LITTLE) {
        findings.advise(
            "disk_nearly_full",
            format!("the disk of the database has only {} left", bytes(free)),
            "free some space, or choose a file on another disk with --db or HELIX_DB",
        );
    }
}

fn check_file(db: &Path, found: &Inspection, findings: &mut Findings) {
    if !found.writable {
        let code = ErrorCode::StoreReadOnly;
        let message = format!("{}: the database file is not writable", db.display());
        findings.problem(code.as_str(), message, remedy_of_database(code));
    }
    if found.stopped > 0 {
        advise_to_resume(found.stopped, findings);
    }
    for engine in found.runtimes.iter().filter(|runtime| *runtime != LOCAL) {
        findings.advise(
            "engine_on_one_machine",
            format!(
                "{}: the file has sessions of {engine}, whose workers on other machines cannot access it",
                db.display()
            ),
            "run all workers on this machine, or move the sessions to PostgreSQL or Redis: helix \
             sessions export, helix sessions import",
        );
    }
}

pub(super) fn advise_to_resume(stopped: u64, findings: &mut Findings) {
    findings.advise(
        "session_stopped",
        format!("{} stopped without ending", count(stopped, "session")),
        "resume them: helix sessions list, helix resume SESSION",
    );
}

/// The number of sessions by status, without statuses that have none.
pub(super) fn by_status(
    running: u64,
    stopped: u64,
    ended: &[(SessionStatus, u64)],
) -> BTreeMap<&'static str, u64> {
    let ended = ended.iter().map(|(status, number)| (status.as_str(), *number));
    let all = [("running", running), ("stopped", stopped)].into_iter().chain(ended);
    all.filter(|(_, number)| *number > 0).collect()
}

/// Formats the number of sessions by status.
pub(super) fn in_words(sessions: &BTreeMap<&'static str, u64>) -> String {
    let of = |(status, number): (&&str, &u64)| format!("{number} {status}");
    let sessions: Vec<String> = sessions.iter().map(of).collect();
    format!(
        "sessions: {}",
        if sessions.is_empty() { "none".to_owned() } else { sessions.join(", ") }
    )
}

impl From<Inspection> for File {
    fn from(found: Inspection) -> Self {
        Self {
            schema: found.schema,
            newest_schema: found.newest_schema,
            sessions: by_status(found.running, found.stopped, &found.ended),
            journal_mode: found.journal_mode,
            bytes: found.bytes,
            chunks: found.chunks,
        }
    }
}

impl std::fmt::Display for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.schema, self.newest_schema) {
            (0, _) => return write!(f, "empty: the first run creates the tables"),
            (schema, newest) if schema == newest => write!(f, "schema {schema}")?,
            (schema, newest) => {
                write!(f, "schema {schema}, which the next run upgrades to {newest}")?
            }
        }
        let chunks = count(self.chunks, "chunk");
        write!(
            f,
            ", {}, journal mode {}, {chunks} of streams",
            bytes(self.bytes),
            self.journal_mode
        )
    }
}
