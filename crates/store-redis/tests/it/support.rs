//! Shared test helpers: keyspaces and sessions.

use std::sync::Arc;

use bytes::Bytes;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{AppendId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, Guard, LeaseChange, NewSession, Position, RetryingStore,
    SessionStatus, StateStore, Summary,
};
use helix_agents_core::stream::{Chunk, ChunkKind, StreamManager};
use helix_agents_store_redis::{RedisBuilder, RedisStore};
use helix_agents_testkit::servers;

/// A unique key prefix on a server. Its keys are deleted after the test.
pub(crate) struct Keyspace {
    url: String,
    prefix: String,
}

impl Keyspace {
    pub(crate) fn new() -> Self {
        Self::at(&servers::redis())
    }

    pub(crate) fn at(url: &str) -> Self {
        Self { url: url.to_owned(), prefix: servers::unique() }
    }

    /// Returns the same prefix on another server with the same data.
    pub(crate) fn moved_to(&self, url: &str) -> Self {
        Self { url: url.to_owned(), prefix: self.prefix.clone() }
    }

    pub(crate) fn builder(&self) -> RedisBuilder {
        RedisStore::builder(&self.url).prefix(&self.prefix)
    }

    pub(crate) async fn store(&self) -> RedisStore {
        self.builder().open().await.unwrap()
    }

    /// Opens a connection to the server that bypasses the store.
    pub(crate) fn server(&self) -> redis::Connection {
        redis::Client::open(&*self.url).unwrap().get_connection().unwrap()
    }

    /// Returns the prefix of all keys.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns `true` if any value of the store contains these bytes.
    pub(crate) fn holds(&self, bytes: &[u8]) -> bool {
        const VALUES: &str = "local kind = redis.call('TYPE', KEYS[1]).ok
            if kind == 'string' then return { redis.call('GET', KEYS[1]) } end
            if kind == 'hash' then return redis.call('HGETALL', KEYS[1]) end
            if kind == 'list' then return redis.call('LRANGE', KEYS[1], 0, -1) end
            if kind == 'set' then return redis.call('SMEMBERS', KEYS[1]) end
            if kind == 'zset' then return redis.call('ZRANGE', KEYS[1], 0, -1) end
            if kind == 'stream' then
              local all = {}
              for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
                for _, value in ipairs(entry[2]) do all[#all + 1] = value end
              end
              return all
            end
            return redis.error_reply('a key of another kind: ' .. kind)";
        let mut server = self.server();
        self.keys().iter().any(|key| {
            let values = redis::cmd("EVAL").arg(VALUES).arg(1).arg(key).query(&mut server);
            let values: Vec<Vec<u8>> = values.unwrap();
            values.iter().any(|value| value.windows(bytes.len()).any(|part| part == bytes))
        })
    }

    /// Returns all keys of the store.
    pub(crate) fn keys(&self) -> Vec<String> {
        let pattern = format!("{}:*", self.prefix);
        let mut keys: Vec<String> =
            redis::cmd("KEYS").arg(pattern).query(&mut self.server()).unwrap();
        keys.sort();
        keys
    }
}

impl Drop for Keyspace {
    fn drop(&mut self) {
        let clear = || -> redis::RedisResult<()> {
            let mut server = redis::Client::open(&*self.url)?.get_connection()?;
            let pattern = format!("{}:*", self.prefix);
            let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg(pattern).query(&mut server)?;
            keys.chunks(1000).try_for_each(|keys| redis::cmd("UNLINK").arg(keys).exec(&mut server))
        };
        // The server may have been stopped by the test.
        let _cleared = clear();
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

pub(crate) fn summary() -> Summary {
    Summary {
        status: SessionStatus::Active,
        run: None,
        runtime: "local".into(),
        pending: 0,
        wake_at: None,
    }
}

pub(crate) fn child_of(parent: Option<&SessionId>, root: &SessionId) -> NewSession {
    NewSession {
        agent: "agent".into(),
        root: root.clone(),
        parent: parent.cloned(),
        tags: [("key".to_owned(), "value".to_owned())].into(),
    }
}

/// Creates a session. Returns the end of its log.
pub(crate) async fn create(store: &impl StateStore, session: &SessionId) -> Position {
    create_as(store, session, child_of(None, session), summary()).await
}

pub(crate) async fn create_as(
    store: &impl StateStore,
    session: &SessionId,
    new: NewSession,
    summary: Summary,
) -> Position {
    let first = append(session, &Position::start(), "first");
    let first = Append { summary: Some(summary), ..first };
    let outcome = store.create_session(new, first).await.unwrap();
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
pub(crate) fn retrying(store: &RedisStore) -> RetryingStore {
    helix_agents_conformance::retrying::store(Arc::new(store.clone()))
}

/// Returns the store's streams with retries.
pub(crate) fn retrying_streams(store: &RedisStore) -> Arc<dyn StreamManager> {
    Arc::new(helix_agents_conformance::retrying::streams(Arc::new(store.clone())))
}

/// Returns the streams of a store. Both contracts have methods of the same names.
pub(crate) fn streams(store: &RedisStore) -> Arc<dyn StreamManager> {
    Arc::new(store.clone())
}
