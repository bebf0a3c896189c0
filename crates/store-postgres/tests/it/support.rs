//! Shared test helpers: schemas and sessions.

use std::sync::Arc;

use bytes::Bytes;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::{AppendId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, Guard, LeaseChange, NewSession, Position, RetryingStore,
    SessionStatus, StateStore, Summary,
};
use helix_agents_core::stream::{Chunk, ChunkKind, StreamManager};
use helix_agents_store_postgres::{PostgresBuilder, PostgresStore};
use helix_agents_testkit::servers;

/// A schema that is dropped after the test.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) schema: String,
    /// The application name of the store's connections.
    pub(crate) name: String,
    _gone: servers::Afterwards,
}

impl Database {
    pub(crate) fn new() -> Self {
        Self::at(&servers::postgres())
    }

    pub(crate) fn at(url: &str) -> Self {
        let name = servers::unique();
        let schema = format!("it's a \"schema\" {name}");
        let url = format!("{url}?application_name={name}");
        let builder = PostgresStore::builder(&url).schema(&schema).connections(1);
        // A pooler may lend idle connections to other clients.
        let (server, cut) = (url.clone(), format!("{} AND state <> 'idle'", cut(&name)));
        let gone = servers::Afterwards::new(|| async move {
            // Operations of the store may still be in progress and hold locks.
            execute(&server, &cut).await;
            builder.destroy().await.unwrap();
        });
        Self { url, schema, name, _gone: gone }
    }

    pub(crate) fn builder(&self) -> PostgresBuilder {
        // Few connections, because many tests run concurrently.
        PostgresStore::builder(&self.url).schema(&self.schema).connections(4)
    }

    pub(crate) async fn open(&self) -> PostgresStore {
        self.builder().open().await.unwrap()
    }

    /// Terminates all connections of the store. Returns their number.
    pub(crate) async fn cut(&self) -> i64 {
        self.sql(&cut(&self.name)).await.first().unwrap().get(0)
    }

    /// Returns `true` if any row of any table contains these bytes.
    pub(crate) async fn contains_bytes(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let schema = self.schema.replace('\'', "''");
        let tables = format!("SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'");
        for table in self.sql(&tables).await {
            let table: String = table.get(0);
            let rows = format!(
                "SELECT 1 FROM {{s}}.\"{table}\" AS it
                 WHERE strpos(it::text, '{text}') > 0 OR strpos(it::text, '{hex}') > 0"
            );
            if !self.sql(&rows).await.is_empty() {
                return true;
            }
        }
        false
    }

    /// Executes SQL on the server, bypassing the store. `{s}` stands for the schema.
    pub(crate) async fn sql(&self, sql: &str) -> Vec<PgRow> {
        let quoted = format!("\"{}\"", self.schema.replace('"', "\"\""));
        execute(&self.url, &sql.replace("{s}", &quoted)).await
    }
}

/// Returns the query that terminates the connections with this name and counts them.
fn cut(name: &str) -> String {
    format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
         WHERE application_name = '{name}' AND pid <> pg_backend_pid()"
    )
}

async fn execute(url: &str, sql: &str) -> Vec<PgRow> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let sql = AssertSqlSafe(sql.to_owned());
    let rows = sqlx::raw_sql(sql).fetch_all(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    rows
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

pub(crate) fn summary(status: SessionStatus, run: Option<&str>) -> Summary {
    let run = run.map(Into::into);
    Summary { status, run, runtime: "local".into(), pending: 0, wake_at: None }
}

pub(crate) fn new_session(session: &SessionId, parent: Option<&str>) -> NewSession {
    NewSession {
        agent: "agent".into(),
        root: parent.map_or_else(|| session.clone(), id),
        parent: parent.map(id),
        tags: [("key".to_owned(), "value".to_owned())].into(),
    }
}

/// Creates a session. Returns the end of its log.
pub(crate) async fn create(store: &impl StateStore, session: &SessionId) -> Position {
    create_below(store, session, None).await
}

pub(crate) async fn create_below(
    store: &impl StateStore,
    session: &SessionId,
    parent: Option<&str>,
) -> Position {
    let first = append(session, &Position::start(), "first");
    let first = Append { summary: Some(summary(SessionStatus::Active, None)), ..first };
    let outcome = store.create_session(new_session(session, parent), first).await.unwrap();
    assert!(matches!(outcome, CreateOutcome::Created { .. }));
    Position { version: 1, append: "first".into() }
}

/// Appends one event. After a conflict, retries at the new end of the log.
pub(crate) async fn add(
    store: &impl StateStore,
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
pub(crate) async fn ids(store: &impl StateStore, session: &SessionId) -> Vec<String> {
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

/// Returns the store with retries, as a runtime uses it.
pub(crate) fn retrying(store: &PostgresStore) -> RetryingStore {
    helix_agents_conformance::retrying::store(Arc::new(store.clone()))
}

/// Returns the store's streams with retries.
pub(crate) fn retrying_streams(store: &PostgresStore) -> Arc<dyn StreamManager> {
    Arc::new(helix_agents_conformance::retrying::streams(Arc::new(store.clone())))
}

/// Returns the streams of a store. Both contracts have methods of the same names.
pub(crate) fn streams(store: &PostgresStore) -> Arc<dyn StreamManager> {
    Arc::new(store.clone())
}

/// Asserts that opening fails with this code.
pub(crate) async fn refused(builder: PostgresBuilder, code: ErrorCode) {
    let error = builder.open().await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
}
