//! Shared test helpers: folders, sessions, and other processes.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use rusqlite::Connection;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::{AppendId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, Guard, LeaseChange, NewSession, Position, SessionStatus,
    StateStore as _, Summary,
};
use helix_agents_core::stream::{self, Chunk, ChunkKind};
use helix_agents_store_sqlite::{SqliteBuilder, SqliteStore};

/// A folder that is deleted after the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Returns the path of the database.
    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("it's a \"store\" %41 ?x=1#.db")
    }

    /// Opens a connection to the database that bypasses the store.
    pub(crate) fn sql(&self) -> Connection {
        Connection::open(self.file()).unwrap()
    }

    pub(crate) async fn open(&self) -> SqliteStore {
        SqliteStore::open(self.file()).await.unwrap()
    }

    /// Returns `true` if a value of any row of any table contains these bytes.
    pub(crate) fn contains_bytes(&self, bytes: &[u8]) -> bool {
        let sql = self.sql();
        let mut tables =
            sql.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
        let tables = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
        tables.map(Result::unwrap).any(|table| {
            let mut statement = sql.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
            let columns = statement.column_count();
            let mut rows = statement.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                for column in 0..columns {
                    let value = row.get_ref(column).unwrap();
                    let value = value.as_bytes_or_null().ok().flatten().unwrap_or_default();
                    if value.windows(bytes.len()).any(|part| part == bytes) {
                        return true;
                    }
                }
            }
            false
        })
    }
}

pub(crate) fn id(text: &str) -> SessionId {
    SessionId::from(text)
}

pub(crate) fn append(session: &SessionId, expected: &Position, id: &str) -> Append {
    Append {
        session: session.clone(),
        expected: expected.clone(),
        id: AppendId::from(id),
        run: None,
        schema: 1,
        count: 1,
        body: Bytes::copy_from_slice(id.as_bytes()),
        summary: None,
        usage: None,
        lease: LeaseChange::Keep,
        guard: Guard::None,
    }
}

/// Creates a session. Returns the end of its log.
pub(crate) async fn create(store: &SqliteStore, session: &SessionId) -> Position {
    let summary = Summary {
        status: SessionStatus::Active,
        run: None,
        runtime: "local".into(),
        pending: 0,
        wake_at: None,
    };
    let new = NewSession {
        agent: "agent".into(),
        root: session.clone(),
        parent: None,
        tags: [("key".to_owned(), "value".to_owned())].into(),
    };
    let first = append(session, &Position::start(), "first");
    let first = Append { summary: Some(summary), ..first };
    let outcome = store.create_session(new, first).await.unwrap();
    assert!(matches!(outcome, CreateOutcome::Created { .. }));
    Position { version: 1, append: "first".into() }
}

/// Appends one event. After a conflict, retries at the new end of the log.
pub(crate) async fn add(
    store: &SqliteStore,
    session: &SessionId,
    position: &mut Position,
    id: &str,
) {
    loop {
        match store.append(append(session, position, id)).await.unwrap() {
            AppendOutcome::Appended { .. } => break,
            AppendOutcome::Conflict { missed } => *position = missed.last().unwrap().position(),
            other => panic!("{other:?}"),
        }
    }
    *position = Position { version: position.version + 1, append: id.into() };
}

/// Returns the ids of all appends of a session.
pub(crate) async fn ids(store: &SqliteStore, session: &SessionId) -> Vec<String> {
    let log = store.read_log(session, 0, u32::MAX).await.unwrap();
    log.iter().map(|append| append.id.to_string()).collect()
}

pub(crate) fn text(session: &SessionId, delta: &str) -> Chunk {
    Chunk {
        agent: "agent".into(),
        session: session.clone(),
        run: "r".into(),
        step: 1,
        at: Timestamp(0),
        kind: ChunkKind::TextDelta { delta: delta.to_owned() },
    }
}

/// Returns the streams of a store. Both contracts have methods of the same names.
pub(crate) fn streams(store: &SqliteStore) -> Arc<dyn stream::StreamManager> {
    Arc::new(store.clone())
}

/// Asserts that opening fails with this code.
pub(crate) async fn refused(builder: SqliteBuilder, code: ErrorCode) {
    let error = builder.open().await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
}

/// Returns the command that runs `what` of `process::other_process` with an argument.
pub(crate) fn command(what: &str, argument: &str, folder: &Folder) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "process::other_process", "--nocapture", "--test-threads=1"])
        .env("HELIX_TEST_PROCESS", what)
        .env("HELIX_TEST_ARGUMENT", argument)
        .env("HELIX_TEST_FILE", folder.file())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}
