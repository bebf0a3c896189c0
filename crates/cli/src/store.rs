//! A store of any supported kind.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents::error::Result;
use helix_agents::guarantee::Guarantee;
use helix_agents::id::{RunId, SessionId};
use helix_agents::prelude::{PostgresStore, RedisStore, SqliteStore};
use helix_agents::runtime_local::{SystemIds, TokioClock};
use helix_agents::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    RetryingStore, SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
};
use helix_agents::stream::{
    Batch, BatchReceipt, ChunkStream, RetryingStreams, StreamInfo, StreamManager,
};

/// The maximum number of PostgreSQL connections of a command.
const CONNECTIONS: usize = 4;

/// How long a command that follows a session retries while the server is unavailable. Other commands fail
/// immediately.
const RETRY_TIMEOUT: Duration = Duration::from_secs(10);

/// A state store and a stream manager in the same database.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    state: Arc<dyn StateStore>,
    streams: Arc<dyn StreamManager>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Sqlite(SqliteStore),
    Postgres(PostgresStore),
    Redis(RedisStore),
}

impl Store {
    /// Opens a SQLite file and creates it if it does not exist.
    pub(crate) async fn sqlite(file: &Path) -> Result<Self> {
        Ok(Self::of_sqlite(SqliteStore::open(file).await?))
    }

    /// Opens a SQLite file read-only.
    pub(crate) async fn sqlite_to_read(file: &Path) -> Result<Self> {
        Ok(Self::of_sqlite(SqliteStore::builder(file).read_only().open().await?))
    }

    fn of_sqlite(store: SqliteStore) -> Self {
        let (state, streams) = (Arc::new(store.clone()), Arc::new(store.clone()));
        Self { state, streams, kind: Kind::Sqlite(store) }
    }

    /// Opens a PostgreSQL database. Creates or upgrades its tables only if `migrates`.
    pub(crate) async fn postgres(url: &str, migrates: bool) -> Result<Self> {
        let builder = PostgresStore::builder(url).connections(CONNECTIONS);
        let store = builder.migrate_on_open(migrates).open().await?;
        let (state, streams) = (Arc::new(store.clone()), Arc::new(store.clone()));
        Ok(Self { state, streams, kind: Kind::Postgres(store) })
    }

    /// Connects to a Redis server. Nothing is written before the first session.
    pub(crate) async fn redis(url: &str) -> Result<Self> {
        let store = RedisStore::open(url).await?;
        let (state, streams) = (Arc::new(store.clone()), Arc::new(store.clone()));
        Ok(Self { state, streams, kind: Kind::Redis(store) })
    }

    /// A store that retries requests while the server is unavailable, for commands that follow a session.
    pub(crate) fn with_retries(self) -> Self {
        let (clock, ids) = (|| Arc::new(TokioClock::new()), || Arc::new(SystemIds));
        Self {
            state: Arc::new(RetryingStore::new(self.state, clock(), ids(), RETRY_TIMEOUT)),
            streams: Arc::new(RetryingStreams::new(self.streams, clock(), ids(), RETRY_TIMEOUT)),
            kind: self.kind,
        }
    }

    /// Closes the store.
    pub(crate) async fn close(&self) {
        match &self.kind {
            Kind::Sqlite(store) => store.close().await,
            Kind::Postgres(store) => store.close().await,
            Kind::Redis(store) => store.close().await,
        }
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl StateStore for Store {
    fn scope(&self) -> StoreScope {
        self.state.scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.state.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.state.max_append_bytes()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.state.create_session(new, first).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.state.fork(from, new, first).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.state.append(append).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.state.read_log(session, after, limit).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.state.head(session).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.state.list(filter, page).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.state.list_usage(filter, page).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.state.renew(session, run, ttl).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.state.save_snapshot(session, snapshot).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.state.snapshot(session).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.state.delete(session).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.state.purge(purge).await
    }
}

#[deny(clippy::missing_trait_methods)]
#[async_trait]
impl StreamManager for Store {
    async fn write(&self, stream: &SessionId, batch: Batch) -> Result<BatchReceipt> {
        self.streams.write(stream, batch).await
    }

    async fn read(&self, stream: &SessionId, from: u64) -> Result<ChunkStream> {
        self.streams.read(stream, from).await
    }

    async fn info(&self, stream: &SessionId) -> Result<StreamInfo> {
        self.streams.info(stream).await
    }

    async fn reset(&self, stream: &SessionId) -> Result<()> {
        self.streams.reset(stream).await
    }

    async fn forget(&self, stream: &SessionId) -> Result<()> {
        self.streams.forget(stream).await
    }
}
