//! The store of the sessions and its guarantees.

use std::io;
use std::path::Path;

use anyhow::Result;
use helix_agents::StoreDiagnosis;
use helix_agents::error::ErrorRecord;
use helix_agents::guarantee::Guarantee;
use helix_agents::prelude::MemoryStore;
use helix_agents::store::StateStore as _;
use helix_agents::{store_postgres, store_redis, store_sqlite};
use serde::Serialize;

use super::page::Page;
use crate::storage;
use crate::text::{bytes, count};

/// The stores section of the report.
#[derive(Debug, Serialize)]
pub(super) struct Stores {
    /// The database that `--db` names.
    #[serde(flatten)]
    pub(super) store: StoreDiagnosis,
    memory: Memory,
}

/// The in-memory store, for programs that embed the library; `helix` does not use it.
#[derive(Debug, Serialize)]
struct Memory {
    guarantees: Vec<Guarantee>,
}

impl Stores {
    pub(super) async fn check(db: &Path) -> Result<Self> {
        let memory = Memory { guarantees: MemoryStore::new().guarantees() };
        Ok(Self { store: storage::location(db).diagnose().await?, memory })
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.heading("Stores")?;
        match &self.store {
            StoreDiagnosis::Sqlite(sqlite) => show_sqlite(sqlite, page)?,
            StoreDiagnosis::Postgres { url, diagnosis } => show_postgres(url, diagnosis, page)?,
            StoreDiagnosis::Redis { url, diagnosis } => show_redis(url, diagnosis, page)?,
            _ => {}
        }
        page.row("memory", "for embedding programs; `helix` stores sessions in the database")?;
        self.memory.guarantees.iter().try_for_each(|guarantee| page.guarantee(guarantee))
    }
}

fn show_sqlite(sqlite: &store_sqlite::Diagnosis, page: &Page<'_>) -> io::Result<()> {
    page.row("sqlite", &sqlite.path.display().to_string())?;
    match &sqlite.file {
        Some(file) => {
            let schema = match file.schema {
                0 => "empty: the first run creates the tables".to_owned(),
                schema => {
                    let (size, chunks) = (bytes(file.bytes), count(file.chunks, "chunk"));
                    let schema = schema_in_words(schema, file.newest_schema);
                    let mode = &file.journal_mode;
                    format!("{schema}, {size}, journal mode {mode}, {chunks} of streams")
                }
            };
            page.row("", &schema)?;
            if file.schema == file.newest_schema {
                page.row("", &format!("sessions: {}", file.sessions))?;
            }
        }
        None => show_absence(
            sqlite.error.as_ref(),
            "does not exist yet: the first run creates it",
            page,
        )?,
    }
    let folder = &sqlite.folder;
    let free = folder.free_bytes.map_or_else(String::new, |free| format!(", {} free", bytes(free)));
    let writable = if folder.writable { "writable" } else { "not writable" };
    page.row("", &format!("folder {writable}{free}"))?;
    show_guarantees(sqlite.stream_retention, &sqlite.guarantees, page)
}

fn show_postgres(
    url: &str,
    postgres: &store_postgres::Diagnosis,
    page: &Page<'_>,
) -> io::Result<()> {
    page.row("postgres", url)?;
    match &postgres.database {
        Some(found) => {
            let schema = found.schema;
            let fsync = if found.fsync { "on" } else { "off" };
            let contents = format!(
                "{}, {}, {} of streams; PostgreSQL {}, fsync {fsync}, synchronous_commit {}",
                schema_in_words(schema, found.newest_schema),
                bytes(found.bytes),
                count(found.chunks, "chunk"),
                found.server,
                found.synchronous_commit
            );
            page.row("", &contents)?;
            if schema == found.newest_schema {
                page.row("", &format!("sessions: {}", found.sessions))?;
            }
        }
        None => {
            let absent = "no tables yet: the first run or `helix migrate` creates them";
            show_absence(postgres.error.as_ref(), absent, page)?;
        }
    }
    show_guarantees(postgres.stream_retention, &postgres.guarantees, page)
}

fn show_redis(url: &str, redis: &store_redis::Diagnosis, page: &Page<'_>) -> io::Result<()> {
    page.row("redis", url)?;
    if let Some(error) = &redis.error {
        page.row("", &error.message)?;
    }
    if let Some(server) = &redis.server {
        let settings = &server.settings;
        let kind = if settings.is_cluster { "Redis Cluster" } else { "Redis" };
        let limit = match settings.max_memory {
            0 => String::new(),
            limit => format!(" of {}", bytes(limit)),
        };
        let contents = format!(
            "{kind} {}, {}, maxmemory-policy {}, {} used{limit}, {}",
            settings.version,
            settings.persistence,
            settings.eviction,
            bytes(settings.used_memory),
            count(u64::from(settings.replicas), "replica")
        );
        page.row("", &contents)?;
        page.row("", &format!("sessions: {}", server.sessions))?;
    }
    show_guarantees(redis.stream_retention, &redis.guarantees, page)
}

/// Shows why there are no contents: an error, or a database that does not exist yet.
fn show_absence(error: Option<&ErrorRecord>, absent: &str, page: &Page<'_>) -> io::Result<()> {
    page.row("", error.map_or(absent, |error| &error.message))
}

fn show_guarantees(kept: u64, guarantees: &[Guarantee], page: &Page<'_>) -> io::Result<()> {
    page.row("", &format!("each stream retains about {kept} chunks; logs are never truncated"))?;
    guarantees.iter().try_for_each(|guarantee| page.guarantee(guarantee))
}

fn schema_in_words(schema: u32, newest: u32) -> String {
    if schema == newest {
        format!("schema {schema}")
    } else {
        format!("schema {schema}, which the next run upgrades to {newest}")
    }
}
