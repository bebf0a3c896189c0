//! The cost of operations in the database, which must not grow with the history.

use bytes::Bytes;
use helix_agents_conformance::ids::batch_id;
use sqlx::Row as _;

use helix_agents_core::store::{Append, ForkOutcome, Position, SessionStatus, StateStore as _};
use helix_agents_core::stream::StreamManagerExt as _;

use super::support::{Database, add, append, create, id, ids, new_session, streams, summary, text};

async fn number(database: &Database, sql: &str) -> i64 {
    database.sql(sql).await.first().unwrap().get(0)
}

async fn rows(database: &Database, table: &str) -> i64 {
    number(database, &format!("SELECT count(*) FROM {{s}}.{table}")).await
}

/// A fork does not copy the history, whatever its length. The history is deleted with the last
/// session that shares it, up to the version that this session shares.
#[tokio::test]
async fn a_fork_adds_one_row_and_its_history_is_deleted_with_the_last_session_that_shares_it() {
    let database = Database::new();
    let store = database.open().await;
    let mut position = create(&store, &id("s")).await;
    for index in 0..20 {
        add(&store, &id("s"), &mut position, &format!("a{index}")).await;
    }
    let fork = async |from: &str, session: &str, position: Position| {
        let summary = Some(summary(SessionStatus::Active, None));
        let first = Append { summary, ..append(&id(session), &position, session) };
        let outcome = store.fork(&id(from), new_session(&id(session), None), first).await.unwrap();
        assert!(matches!(outcome, ForkOutcome::Created { .. }), "{outcome:?}");
    };
    let before = rows(&database, "appends").await;
    fork("s", "one", Position { version: 10, append: "a8".into() }).await;
    fork("one", "two", Position { version: 11, append: "one".into() }).await;
    let now = (rows(&database, "appends").await, rows(&database, "forks").await);
    assert_eq!(now, (before + 2, 2));

    store.delete(&id("s")).await.unwrap();
    assert_eq!(
        rows(&database, "appends").await,
        10 + 2,
        "appends that no session shares are deleted"
    );
    store.delete(&id("one")).await.unwrap();
    let now = (rows(&database, "appends").await, rows(&database, "forks").await);
    assert_eq!(now, (12, 2));
    store.delete(&id("two")).await.unwrap();
    let now = (rows(&database, "appends").await, rows(&database, "forks").await);
    assert_eq!(now, (0, 0));
}

/// Without serialization, two deletions would each see that the other fork still shares the log.
#[tokio::test]
async fn concurrently_deleted_forks_leave_nothing() {
    let database = Database::new();
    let store = database.open().await;
    for round in 0..5 {
        let origin = id(&format!("s{round}"));
        let position = create(&store, &origin).await;
        let forks: Vec<_> = (0..4).map(|number| id(&format!("f{round}-{number}"))).collect();
        for fork in &forks {
            let summary = Some(summary(SessionStatus::Active, None));
            let first = Append { summary, ..append(fork, &position, "fork") };
            store.fork(&origin, new_session(fork, None), first).await.unwrap();
        }
        store.delete(&origin).await.unwrap();
        let deleting = forks.iter().map(|fork| store.delete(fork));
        for deleted in futures_util::future::join_all(deleting).await {
            assert!(deleted.unwrap());
        }
        assert_eq!((rows(&database, "appends").await, rows(&database, "forks").await), (0, 0));
    }
}

/// A fork during a deletion of its original either has the whole history or fails.
#[tokio::test]
async fn a_fork_during_a_deletion_is_complete_or_fails() {
    let database = Database::new();
    let store = database.open().await;
    let mut made = 0;
    for round in 0..30 {
        let (origin, fork) = (id(&format!("s{round}")), id(&format!("f{round}")));
        let mut position = create(&store, &origin).await;
        add(&store, &origin, &mut position, "a").await;
        let summary = Some(summary(SessionStatus::Active, None));
        let first = Append { summary, ..append(&fork, &position, "fork") };
        let (forked, deleted) = tokio::join!(
            store.fork(&origin, new_session(&fork, None), first),
            store.delete(&origin),
        );
        assert!(deleted.unwrap());
        if forked.is_ok() {
            made += 1;
            assert_eq!(ids(&store, &fork).await, ["first", "a", "fork"]);
        }
    }
    assert!(made > 0, "no fork was ever in time");
}

#[tokio::test]
async fn an_append_to_a_long_session_costs_no_more_than_to_a_short_one() {
    let database = Database::new();
    let store = database.open().await;
    let session = id("long");
    create(&store, &session).await;
    // 50,000 events in 5,000 appends, inserted with SQL for speed.
    database
        .sql(
            "INSERT INTO {s}.appends SELECT s.log, 2 + 10 * n, 10, 'a' || n, NULL, 1, s.created_at, 'x'
             FROM {s}.sessions s, generate_series(0, 4999) n;
             UPDATE {s}.sessions SET version = 50001, append = 'a4999';
             ANALYZE {s}.appends",
        )
        .await;
    let mut position = Position { version: 50_001, append: "a4999".into() };
    for number in 0..10 {
        add(&store, &session, &mut position, &format!("b{number}")).await;
    }
    let log = store.read_log(&session, 0, u32::MAX).await.unwrap();
    assert_eq!((log.len(), log.last().unwrap().version()), (5_011, 50_011));
    // A conflict only reads the missed appends, by their key.
    let stale = Position { version: 50_001, append: "a4999".into() };
    let outcome = store.append(append(&session, &stale, "late")).await.unwrap();
    let helix_agents_core::store::AppendOutcome::Conflict { missed } = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(missed.len(), 10);
    let plan = database
        .sql(
            "SET enable_seqscan = on; EXPLAIN SELECT * FROM {s}.appends
             WHERE log = 1 AND first > 50001 ORDER BY first LIMIT 5",
        )
        .await;
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    assert!(plan.iter().any(|line| line.contains("Index Scan using appends_pkey")), "{plan:#?}");
}

/// Appends do not change the indexes of heads, so the indexes need no vacuuming.
#[tokio::test]
async fn appends_do_not_change_the_indexes_of_heads() {
    let database = Database::new();
    let store = database.open().await;
    let mut position = create(&store, &id("s")).await;
    for number in 0..50 {
        add(&store, &id("s"), &mut position, &format!("a{number}")).await;
    }
    store.close().await;
    let quoted = database.schema.replace('\'', "''");
    let updates = format!(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
         WHERE relname = 'sessions' AND schemaname = '{quoted}'"
    );
    // The server updates its statistics when a connection ends.
    let (all, hot) = loop {
        let row = database.sql(&updates).await;
        let row = row.first().unwrap();
        let (all, hot): (i64, i64) = (row.get(0), row.get(1));
        if all >= 50 {
            break (all, hot);
        }
        tokio::task::yield_now().await;
    };
    assert!(hot * 10 >= all * 9, "{hot} of {all} updates stayed on their page");
}

#[tokio::test]
async fn a_message_of_ten_megabytes_goes_through_log_and_stream() {
    let database = Database::new();
    let store = database.open().await;
    let session = id("s");
    let position = create(&store, &session).await;
    let body = Bytes::from(vec![b'x'; 10 << 20]);
    let large = Append { body: body.clone(), ..append(&session, &position, "large") };
    store.append(large).await.unwrap();
    assert_eq!(store.read_log(&session, 1, 1).await.unwrap().first().unwrap().body, body);
    let delta = "x".repeat(10 << 20);
    streams(&store)
        .append_chunks(batch_id(), &session, None, vec![text(&session, &delta)])
        .await
        .unwrap();
    let mut reader = streams(&store).read(&session, 1).await.unwrap();
    let chunk = futures_util::StreamExt::next(&mut reader).await.unwrap().unwrap();
    assert_eq!(chunk.chunk.kind, text(&session, &delta).kind);
}
