//! Where sessions are kept, and what holds of that.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use helix_agents::error::ErrorCode;
use helix_agents::guarantee::Guarantee;
use helix_agents::prelude::{MemoryStore, SqliteStore};
use helix_agents::store::StateStore as _;
use helix_agents::store_sqlite::Inspection;
use serde::Serialize;

use super::disk::Folder;
use super::finding::{Failed, Findings, remedy_of_database};
use super::page::Page;
use crate::text::{bytes, count};

/// The stores that this program does without.
const ABSENT: [&str; 2] = ["postgres", "redis"];

/// So little room on the disk is worth a word.
const LITTLE: u64 = 100 * 1024 * 1024;

/// Where sessions can be kept.
#[derive(Debug, Serialize)]
pub(super) struct Stores {
    sqlite: Sqlite,
    memory: Memory,
    /// Those that this program does not have.
    absent: [&'static str; 2],
}

/// The file that `--db` names.
#[derive(Debug, Serialize)]
struct Sqlite {
    path: PathBuf,
    exists: bool,
    /// Why it cannot be used, if so.
    error: Option<Failed>,
    /// What is in it, if it can be used.
    file: Option<File>,
    folder: Folder,
    /// About how many chunks of each stream are kept.
    stream_retention: u64,
    guarantees: Vec<Guarantee>,
}

/// What is in the file.
#[derive(Debug, Serialize)]
struct File {
    schema: u32,
    newest_schema: u32,
    journal_mode: String,
    bytes: u64,
    chunks: u64,
    /// Sessions by how they stand, in the words of `helix sessions list`.
    sessions: BTreeMap<&'static str, u64>,
}

/// The memory of a process: for programs, not for `helix`.
#[derive(Debug, Serialize)]
struct Memory {
    guarantees: Vec<Guarantee>,
}

impl Stores {
    pub(super) async fn look(db: &Path, findings: &mut Findings) -> Self {
        let memory = Memory { guarantees: MemoryStore::new().guarantees() };
        Self { sqlite: Sqlite::look(db, findings).await, memory, absent: ABSENT }
    }

    pub(super) fn show(&self, page: &Page<'_>) -> io::Result<()> {
        page.heading("Stores")?;
        self.sqlite.show(page)?;
        page.row("memory", "for programs; `helix` keeps its sessions in the file")?;
        for guarantee in &self.memory.guarantees {
            page.guarantee(guarantee)?;
        }
        page.row("not here", &format!("{}: this program has no other store", ABSENT.join(", ")))
    }
}

impl Sqlite {
    async fn look(db: &Path, findings: &mut Findings) -> Self {
        let builder = SqliteStore::builder(db);
        let folder = Folder::of(db);
        let looked = builder.inspect().await;
        let error = looked.as_ref().err().map(Failed::from);
        if let Err(error) = &looked {
            let message = format!("{}: {}", db.display(), error.message());
            findings.problem(error.code().as_str(), message, remedy_of_database(error.code()));
        } else {
            check_folder(&folder, findings);
        }
        let found = looked.ok().flatten();
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
            (None, None) => "not there yet: the first run makes it".to_owned(),
        };
        page.row("", &state)?;
        if let Some(file) = self.file.as_ref().filter(|file| file.schema == file.newest_schema) {
            let of = |(standing, number): (&&str, &u64)| format!("{number} {standing}");
            let sessions: Vec<String> = file.sessions.iter().map(of).collect();
            let sessions =
                if sessions.is_empty() { "none".to_owned() } else { sessions.join(", ") };
            page.row("", &format!("sessions: {sessions}"))?;
        }
        let folder = &self.folder;
        let free = folder.free_bytes.map_or_else(String::new, |it| format!(", {} free", bytes(it)));
        let writable = if folder.writable { "writable" } else { "not writable" };
        page.row("", &format!("folder {writable}{free}"))?;
        let kept = self.stream_retention;
        page.row("", &format!("streams keep about {kept} chunks each; logs keep everything"))?;
        for guarantee in &self.guarantees {
            page.guarantee(guarantee)?;
        }
        Ok(())
    }
}

/// A folder in which the file can be made, or written.
fn check_folder(folder: &Folder, findings: &mut Findings) {
    let path = folder.path.display();
    if !folder.exists {
        let code = ErrorCode::ConfigInvalid;
        let message = format!("the folder of the database, {path}, does not exist");
        findings.problem(code.as_str(), message, remedy_of_database(code));
    } else if !folder.writable {
        let code = ErrorCode::StoreReadOnly;
        let message = format!("the folder of the database, {path}, cannot be written");
        findings.problem(code.as_str(), message, remedy_of_database(code));
    }
    if let Some(name) = folder.network_file_system {
        findings.advise(
            "network_file_system",
            format!("the folder of the database, {path}, is on a network file system ({name})"),
            "name a file on a local disk with --db or HELIX_DB: there SQLite's locks hold",
        );
    }
    if let Some(free) = folder.free_bytes.filter(|free| *free < LITTLE) {
        findings.advise(
            "disk_nearly_full",
            format!("the disk of the database has {} left", bytes(free)),
            "make room, or name a file on another disk with --db or HELIX_DB",
        );
    }
}

fn check_file(db: &Path, found: &Inspection, findings: &mut Findings) {
    if !found.writable {
        let code = ErrorCode::StoreReadOnly;
        let message = format!("{}: the database file cannot be written", db.display());
        findings.problem(code.as_str(), message, remedy_of_database(code));
    }
    if found.stopped > 0 {
        findings.advise(
            "session_stopped",
            format!("{} stopped without ending", count(found.stopped, "session")),
            "go on with them: helix sessions list, helix resume SESSION",
        );
    }
}

impl From<Inspection> for File {
    fn from(found: Inspection) -> Self {
        let under_way = [("running", found.running), ("stopped", found.stopped)];
        let ended = found.ended.iter().map(|(status, number)| (status.as_str(), *number));
        let sessions = under_way.into_iter().chain(ended).filter(|(_, number)| *number > 0);
        Self {
            schema: found.schema,
            newest_schema: found.newest_schema,
            sessions: sessions.collect(),
            journal_mode: found.journal_mode,
            bytes: found.bytes,
            chunks: found.chunks,
        }
    }
}

impl std::fmt::Display for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.schema, self.newest_schema) {
            (0, _) => return write!(f, "empty: the first run fills it"),
            (schema, newest) if schema == newest => write!(f, "schema {schema}")?,
            (schema, newest) => write!(f, "schema {schema}, which the next run makes {newest}")?,
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
