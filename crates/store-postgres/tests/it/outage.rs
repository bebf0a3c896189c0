//! Lost connections and lost responses.

use std::time::Duration;

use futures_util::StreamExt as _;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::store::StateStore as _;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_test::within;

use super::support::{
    Database, add, append, create, id, ids, retrying, retrying_streams, streams, text,
};

#[tokio::test]
async fn terminated_connections_are_replaced() {
    let database = Database::new();
    let opened = database.open().await;
    let (store, streams) = (retrying(&opened), retrying_streams(&opened));
    let mut position = create(&store, &id("s")).await;
    for number in 0..5 {
        assert!(database.cut().await > 0);
        add(&store, &id("s"), &mut position, &format!("a{number}")).await;
        database.cut().await;
        streams.append_chunks(batch_id(), &id("s"), None, vec![text(&id("s"), "x")]).await.unwrap();
    }
    assert_eq!(ids(&store, &id("s")).await.len(), 6);
    assert_eq!(streams.info(&id("s")).await.unwrap().last_seq, 5);
}

/// An append whose connection is cut is written once and answered, whatever it was doing.
#[tokio::test]
async fn interrupted_appends_and_batches_are_written_once() {
    let database = Database::new();
    let opened = database.open().await;
    let (store, streams) = (retrying(&opened), retrying_streams(&opened));
    let session = id("s");
    let mut position = create(&store, &session).await;
    let (progress, mut progressed) = tokio::sync::watch::channel(0);
    let writing = async {
        for number in 0..150 {
            progress.send_replace(number);
            add(&store, &session, &mut position, &format!("a{number}")).await;
            let chunk = text(&session, &number.to_string());
            streams.append_chunks(batch_id(), &session, None, vec![chunk]).await.unwrap();
        }
    };
    // Cuts the connections at some point of one of the next operations, each time the store made
    // progress.
    let cutting = async {
        loop {
            progressed.changed().await.unwrap();
            database.cut().await;
        }
    };
    tokio::select! {
        () = within(writing) => {}
        () = cutting => {}
    }
    let expected =
        ["first".to_owned()].into_iter().chain((0..150).map(|number| format!("a{number}")));
    assert_eq!(ids(&store, &session).await, expected.collect::<Vec<_>>());
    let mut reader = streams.read(&session, 1).await.unwrap();
    for seq in 1..=150 {
        let chunk = within(reader.next()).await.unwrap().unwrap();
        assert_eq!(
            (chunk.seq, &chunk.chunk.kind),
            (seq, &text(&session, &(seq - 1).to_string()).kind)
        );
    }
    assert_eq!(streams.info(&session).await.unwrap().last_seq, 150);
}

#[tokio::test]
async fn a_reader_continues_after_its_connections_were_cut() {
    let database = Database::new();
    let reading = database.builder().poll_interval(Duration::from_secs(3600)).open().await.unwrap();
    let writing = database.open().await;
    let mut reader = retrying_streams(&reading).read(&id("s"), 1).await.unwrap();
    for number in 1..=5 {
        retrying_streams(&writing)
            .append_chunks(batch_id(), &id("s"), None, vec![text(&id("s"), "x")])
            .await
            .unwrap();
        assert_eq!(within(reader.next()).await.unwrap().unwrap().seq, number);
        // This includes the listening connection.
        database.cut().await;
    }
}

/// Without notifications, polling finds the chunks of other stores.
#[tokio::test]
async fn a_reader_behind_a_pooler_polls() {
    let database = Database::new();
    let reading = database.builder().behind_transaction_pooler(true).open().await.unwrap();
    let writing = database.open().await;
    let mut reader = streams(&reading).read(&id("s"), 1).await.unwrap();
    for number in 1..=3 {
        streams(&writing)
            .append_chunks(batch_id(), &id("s"), None, vec![text(&id("s"), "x")])
            .await
            .unwrap();
        assert_eq!(within(reader.next()).await.unwrap().unwrap().seq, number);
    }
    let listening = "SELECT 1 FROM pg_stat_activity WHERE query = 'LISTEN {name}'";
    let name = format!("\"{}\"", database.schema.replace('"', "\"\"")).replace('\'', "''");
    assert_eq!(database.sql(&listening.replace("{name}", &name)).await.len(), 0);
}

/// With an hour between polls, only notifications announce the chunks of other stores.
#[tokio::test]
async fn a_reader_is_notified_of_what_other_stores_write() {
    let database = Database::new();
    let reading = database.builder().poll_interval(Duration::from_secs(3600)).open().await.unwrap();
    let writing = database.open().await;
    let mut reader = streams(&reading).read(&id("s"), 1).await.unwrap();
    for number in 1..=50 {
        streams(&writing)
            .append_chunks(batch_id(), &id("s"), None, vec![text(&id("s"), "x")])
            .await
            .unwrap();
        assert_eq!(within(reader.next()).await.unwrap().unwrap().seq, number);
    }
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_canceled() {
    let database = Database::new();
    // Creating the tables may take longer than the timeout below.
    database.open().await.close().await;
    let builder = database.builder().operation_timeout(Duration::from_secs(1));
    let store = builder.open().await.unwrap();
    let position = create(&store, &id("s")).await;
    let mut other = <sqlx::PgConnection as sqlx::Connection>::connect(&database.url).await.unwrap();
    let name = database.schema.replace('"', "\"\"");
    let lock = format!("BEGIN; SELECT * FROM \"{name}\".sessions FOR UPDATE");
    sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(&mut other).await.unwrap();
    let error = store.append(append(&id("s"), &position, "a")).await.unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (ErrorCode::StoreUnavailable, true));
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    let mut position = position;
    add(&store, &id("s"), &mut position, "a").await;
    assert_eq!(ids(&store, &id("s")).await, ["first", "a"]);
}

/// Batches are committed without waiting for the disk, so a server crash may lose the last ones.
#[tokio::test]
async fn a_stream_that_lost_its_end_can_be_written_to() {
    let database = Database::new();
    let streams = retrying_streams(&database.open().await);
    let session = id("s");
    streams.append_chunks(batch_id(), &session, None, vec![text(&session, "a")]).await.unwrap();
    let kept = "CREATE TABLE {s}.kept AS SELECT * FROM {s}.streams";
    database.sql(kept).await;
    for delta in ["b", "c"] {
        streams
            .append_chunks(batch_id(), &session, None, vec![text(&session, delta)])
            .await
            .unwrap();
    }
    let crash = "DELETE FROM {s}.streams; DELETE FROM {s}.chunks WHERE last > 1;
        INSERT INTO {s}.streams OVERRIDING SYSTEM VALUE SELECT * FROM {s}.kept; DROP TABLE {s}.kept";
    database.sql(crash).await;
    database.cut().await;
    assert_eq!(
        streams.append_chunks(batch_id(), &session, None, vec![text(&session, "d")]).await.unwrap(),
        2
    );
}

#[tokio::test]
async fn a_stream_that_diverged_after_a_crash_is_read_again() {
    let database = Database::new();
    let (store, other) = (database.open().await, database.open().await);
    let session = id("s");
    streams(&store)
        .append_chunks(batch_id(), &session, None, vec![text(&session, "a")])
        .await
        .unwrap();
    database.sql("CREATE TABLE {s}.kept AS SELECT * FROM {s}.streams").await;
    streams(&store)
        .append_chunks(batch_id(), &session, None, vec![text(&session, "lost")])
        .await
        .unwrap();
    let crash = "DELETE FROM {s}.streams; DELETE FROM {s}.chunks WHERE last > 1;
        INSERT INTO {s}.streams OVERRIDING SYSTEM VALUE SELECT * FROM {s}.kept; DROP TABLE {s}.kept";
    database.sql(crash).await;
    // The same revision as the lost one, but with more chunks.
    let two = vec![text(&session, "b"), text(&session, "c")];
    assert_eq!(streams(&other).append_chunks(batch_id(), &session, None, two).await.unwrap(), 3);
    assert_eq!(
        streams(&store)
            .append_chunks(batch_id(), &session, None, vec![text(&session, "d")])
            .await
            .unwrap(),
        4
    );
}
