//! Concurrent operations share a statement, and each has its own outcome.

use std::time::Duration;

use futures_util::future::join_all;
use helix_agents_conformance::ids::batch_id;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{
    Append, AppendOutcome, Guard, LeaseChange, Position, StateStore as _,
};
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_store_postgres::PostgresStore;
use helix_agents_test::within;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::task::JoinHandle;

use super::support::{Database, append, create, id, ids, streams, text};

/// Simulates a transaction of another client that stays open.
struct Locked(PgConnection);

impl Locked {
    /// Locks a row of each of these sessions.
    async fn new(database: &Database, table: &str, sessions: &[&str]) -> Self {
        let mut connection = PgConnection::connect(&database.url).await.unwrap();
        let schema = database.schema.replace('"', "\"\"");
        let sessions =
            sessions.iter().map(|session| format!("'{session}'")).collect::<Vec<_>>().join(",");
        let sql = format!(
            "BEGIN; SELECT 1 FROM \"{schema}\".{table} WHERE session IN ({sessions}) FOR UPDATE"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        Self(connection)
    }

    async fn end(mut self) {
        sqlx::raw_sql("COMMIT").execute(&mut self.0).await.unwrap();
        self.0.close().await.unwrap();
    }
}

fn begin(store: &PostgresStore, append: Append) -> JoinHandle<Result<AppendOutcome>> {
    let store = store.clone();
    tokio::spawn(async move { store.append(append).await })
}

/// Two appends wait for locks and occupy both turns while the other appends arrive.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_in_one_group_have_their_own_outcomes() {
    let database = Database::new();
    let store = database.builder().connections(8).open().await.unwrap();
    let mut ends = Vec::new();
    for number in 0..12 {
        ends.push(create(&store, &id(&format!("s{number}"))).await);
    }
    let next = |number: usize, name: &str| {
        let session = id(&format!("s{number}"));
        ends.get(number).map(|end| append(&session, end, name)).unwrap()
    };
    let leased = Append { lease: LeaseChange::Take(Duration::from_secs(60)), ..next(9, "leased") };
    store.append(leased).await.unwrap();
    let behind = Position { version: 2, append: "leased".into() };
    let locked = Locked::new(&database, "sessions", &["s0", "s1"]).await;
    let held = [begin(&store, next(0, "held")), begin(&store, next(1, "held"))];
    let nowhere = Position { version: 1, append: "first".into() };
    let appends = [
        next(2, "a"),
        next(3, "b"),
        // The same append twice, as after a late response.
        next(4, "c"),
        next(4, "c"),
        // Two appends that expect the same position.
        next(5, "d"),
        next(5, "e"),
        // A log whose end is not the expected one.
        Append { expected: Position { version: 7, append: "x".into() }, ..next(6, "f") },
        Append { guard: Guard::NotAfter(Timestamp(1)), ..next(7, "g") },
        Append { guard: Guard::NotAfter(Timestamp(i64::MAX)), ..next(8, "h") },
        Append { guard: Guard::LeaseFree, expected: behind, ..next(9, "i") },
        Append { guard: Guard::LeaseFree, ..next(10, "j") },
        append(&id("nowhere"), &nowhere, "k"),
        // Large appends do not make others wait.
        Append { body: vec![b'x'; 200_000].into(), ..next(11, "l") },
    ];
    let ends = join_all(appends.map(|append| begin(&store, append))).await;
    let outcomes: Vec<_> = ends
        .into_iter()
        .map(|end| match end.unwrap() {
            Ok(AppendOutcome::Appended { .. }) => "appended".to_owned(),
            Ok(AppendOutcome::Conflict { missed }) => format!("conflict with {}", missed.len()),
            Ok(AppendOutcome::GuardFailed { lease_until, .. }) => {
                format!("guard, leased: {}", lease_until.is_some())
            }
            Ok(AppendOutcome::HistoryLost) => "history lost".to_owned(),
            Err(error) => error.code().to_string(),
        })
        .collect();
    let (mut of_five, mut others) = (outcomes.clone(), outcomes);
    let of_five: Vec<_> = of_five.drain(4..6).collect();
    others.drain(4..6);
    let taken = "appended";
    assert!(of_five.contains(&taken.to_owned()), "{of_five:?}");
    assert!(of_five.contains(&"conflict with 1".to_owned()), "{of_five:?}");
    let lost = "history lost";
    assert_eq!(
        others,
        [
            taken,
            taken,
            taken,
            taken,
            lost,
            "guard, leased: false",
            taken,
            "guard, leased: true",
            taken,
            ErrorCode::SessionNotFound.as_str(),
            taken
        ]
    );
    assert!(held.iter().all(|task| !task.is_finished()));
    locked.end().await;
    for held in held {
        assert!(matches!(within(held).await.unwrap(), Ok(AppendOutcome::Appended { .. })));
    }
    for (number, expected) in [(0, "held"), (4, "c"), (8, "h")] {
        assert_eq!(ids(&store, &id(&format!("s{number}"))).await, ["first", expected]);
    }
}

/// One transaction writes concurrent appends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_appends_share_a_transaction() {
    let database = Database::new();
    let store = database.builder().connections(8).open().await.unwrap();
    let all: Vec<SessionId> = (0..32).map(|number| id(&format!("s{number}"))).collect();
    let mut ends = Vec::new();
    for session in &all {
        ends.push(create(&store, session).await);
        let chunks = vec![text(session, "before")];
        streams(&store).append_chunks(batch_id(), session, None, chunks).await.unwrap();
    }
    let appends = all.iter().zip(&ends).map(|(session, end)| {
        let streams = streams(&store);
        // All appends have the same id, but different bodies.
        let body = session.as_str().to_owned().into();
        let appended = begin(&store, Append { body, ..append(session, end, "more") });
        async move {
            appended.await.unwrap().unwrap();
            streams
                .append_chunks(batch_id(), session, None, vec![text(session, "x")])
                .await
                .unwrap();
        }
    });
    within(join_all(appends)).await;
    for session in &all {
        let log = store.read_log(session, 1, 10).await.unwrap();
        let [row] = &*log else { panic!("{log:?}") };
        assert_eq!(row.body, session.as_str().as_bytes());
    }
    for (table, of) in [("appends", "first = 2"), ("chunks", "last = 2")] {
        let sql =
            format!("SELECT count(*), count(DISTINCT xmin::text) FROM {{s}}.{table} WHERE {of}");
        let rows = database.sql(&sql).await;
        let counts = rows.first().map(|row| {
            use sqlx::Row as _;
            (row.get::<i64, _>(0), row.get::<i64, _>(1))
        });
        let (rows, transactions) = counts.unwrap();
        assert_eq!(rows, 32);
        // On a busy machine, the appends start at different times, so there are more groups.
        assert!(transactions <= 24, "{transactions} transactions for {table}");
    }
}

/// Two batches wait for locks and occupy both turns, while batches of other streams continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_stream_does_not_block_others() {
    let database = Database::new();
    let store = database.builder().connections(8).open().await.unwrap();
    let write = |name: &str| {
        let (streams, session) = (streams(&store), id(name));
        tokio::spawn(async move {
            streams.append_chunks(batch_id(), &session, None, vec![text(&session, "x")]).await
        })
    };
    for name in ["a", "b", "c", "d", "e", "f"] {
        write(name).await.unwrap().unwrap();
    }
    let locked = Locked::new(&database, "streams", &["a", "b", "f"]).await;
    // The first two wait for locks and occupy both turns. The third one shares a group with others.
    let held = [write("a"), write("b"), write("f")];
    let others = join_all(["c", "d", "e"].map(write));
    assert!(within(others).await.into_iter().all(|result| result.unwrap().is_ok()));
    // Enough rounds that a writer that was overtaken each time would give up.
    for _ in 0..200 {
        assert!(
            join_all(["c", "d", "e"].map(write))
                .await
                .into_iter()
                .all(|result| result.unwrap().is_ok())
        );
    }
    assert!(held.iter().all(|task| !task.is_finished()));
    locked.end().await;
    for held in held {
        within(held).await.unwrap().unwrap();
    }
    for name in ["a", "b", "f"] {
        assert_eq!(streams(&store).info(&id(name)).await.unwrap().last_seq, 2);
    }
}
