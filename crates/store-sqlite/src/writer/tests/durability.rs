//! The sync level of commits, as seen by an operation in the same transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use helix_agents_conformance::ids::batch_id;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, Guard, LeaseChange, NewSession, Position, SessionStatus, StateStore, Summary,
};
use helix_agents_core::stream::{self, Batch, Chunk, ChunkKind, StreamManager, StreamOp};

use super::{Durability, Scratch, Writer, hold, release};
use crate::prepared::Tables;
use crate::{SqliteStore, Synchronous};

const NORMAL: i64 = 1;
const FULL: i64 = 2;

/// Returns the sync level of a transaction that needs at least this durability.
async fn level(writer: &Writer, durability: Durability) -> i64 {
    let ask = |tables: &mut Tables<'_>| {
        let level = tables.connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
        Ok(level)
    };
    writer.run(durability, ask, |_| ()).await.unwrap()
}

#[tokio::test]
async fn each_transaction_is_as_durable_as_it_has_to_be() {
    let scratch = Scratch::new(|builder| builder).await;
    let writer = &scratch.writer;
    for _ in 0..2 {
        assert_eq!(level(writer, Durability::Process).await, NORMAL);
        assert_eq!(level(writer, Durability::System).await, FULL);
        assert_eq!(level(writer, Durability::System).await, FULL);
    }
    let (held, holding) = hold(writer).await;
    let (process, system, ()) = tokio::join!(
        level(writer, Durability::Process),
        level(writer, Durability::System),
        release(held, holding)
    );
    assert_eq!((process, system), (FULL, FULL), "the strictest level applies to all");
    assert_eq!(level(writer, Durability::Process).await, NORMAL);
}

/// Returns the sync level of the transaction that contains an operation.
async fn level_of<T>(store: &SqliteStore, operation: impl Future<Output = Result<T>>) -> i64 {
    let writer = &store.inner.writer;
    let (held, holding) = hold(writer).await;
    let (done, level, ()) =
        tokio::join!(operation, level(writer, Durability::Process), release(held, holding));
    done.unwrap();
    level
}

#[tokio::test]
async fn the_log_is_as_durable_as_configured_and_streams_and_leases_are_not() {
    for (synchronous, log) in [(Synchronous::Full, FULL), (Synchronous::Normal, NORMAL)] {
        let folder = tempfile::tempdir().unwrap();
        let builder = SqliteStore::builder(folder.path().join("s.db")).synchronous(synchronous);
        let store = builder.open().await.unwrap();
        let (sessions, streams): (&dyn StateStore, &dyn StreamManager) = (&store, &store);
        let session = SessionId::from("s");

        let creating = sessions.create_session(new(&session), append(&session, Position::start()));
        assert_eq!(level_of(&store, creating).await, log);
        let next = append(&session, Position { version: 1, append: "a".into() });
        assert_eq!(level_of(&store, sessions.append(next)).await, log);
        let chunks = StreamOp::Chunks { attempt: None, chunks: vec![chunk(&session).into()] };
        assert_eq!(
            level_of(
                &store,
                streams.write(
                    &session,
                    Batch::new(batch_id(), stream::Writer::without_run(&session), [chunks])
                )
            )
            .await,
            NORMAL
        );
        let run = RunId::from("r");
        let renewing = sessions.renew(&session, &run, Duration::from_secs(1));
        assert_eq!(level_of(&store, renewing).await, NORMAL);
        assert_eq!(level_of(&store, streams.reset(&session)).await, NORMAL);
        assert_eq!(level_of(&store, sessions.delete(&session)).await, log);
    }
}

fn new(session: &SessionId) -> NewSession {
    let (agent, root) = ("agent".into(), session.clone());
    NewSession { agent, root, parent: None, tags: BTreeMap::new() }
}

fn append(session: &SessionId, expected: Position) -> Append {
    let summary = Summary {
        status: SessionStatus::Active,
        run: Some("r".into()),
        runtime: "local".into(),
        pending: 0,
        wake_at: None,
    };
    Append {
        session: session.clone(),
        expected,
        id: "a".into(),
        run: Some("r".into()),
        schema: 1,
        count: 1,
        body: Bytes::from_static(b"x"),
        summary: Some(summary),
        usage: None,
        lease: LeaseChange::Keep,
        guard: Guard::None,
    }
}

fn chunk(session: &SessionId) -> Chunk {
    Chunk {
        agent: "agent".into(),
        session: session.clone(),
        run: "r".into(),
        step: 1,
        at: Timestamp(0),
        kind: ChunkKind::RunStarted { turn: 1 },
    }
}
