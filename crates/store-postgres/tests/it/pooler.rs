//! A pooler that lends out a server connection per transaction: PgBouncer in transaction mode.

use std::time::Duration;

use futures_util::StreamExt as _;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_store_postgres::{PostgresBuilder, PostgresStore};
use helix_agents_test::within;
use helix_agents_testkit::servers;

use super::support::{Database, add, create, id, ids, refused, streams, text};

/// A schema that is used through the pooler. The test's own statements bypass it.
struct Pooled(Database);

impl Pooled {
    fn new() -> Self {
        Self(Database::new())
    }

    fn url(&self) -> String {
        // The server can identify the current client of a connection by this name.
        format!("{}?pooler=transaction&application_name={}", servers::pgbouncer(), self.0.name)
    }

    fn builder(&self) -> PostgresBuilder {
        // More connections than the pooler has to the server.
        PostgresStore::builder(&self.url()).schema(&self.0.schema).connections(8)
    }

    async fn open(&self) -> PostgresStore {
        self.builder().open().await.unwrap()
    }
}

mod conformance {
    use std::sync::Arc;

    use helix_agents_conformance::store_suite::StoreHarness;
    use helix_agents_core::store::{StateStore, StoreScope};

    use super::Pooled;

    #[async_trait::async_trait]
    impl StoreHarness for Pooled {
        fn scope(&self) -> StoreScope {
            StoreScope::Network
        }

        async fn open(&self) -> Arc<dyn StateStore> {
            Arc::new(self.open().await)
        }
    }

    async fn harness() -> Pooled {
        Pooled::new()
    }

    helix_agents_conformance::store_suite!(harness);
}

mod stream {
    use std::sync::Arc;

    use helix_agents_conformance::stream_suite::StreamHarness;
    use helix_agents_core::stream::StreamManager;

    use super::Pooled;

    #[async_trait::async_trait]
    impl StreamHarness for Pooled {
        async fn open(&self) -> Arc<dyn StreamManager> {
            Arc::new(self.open().await)
        }

        async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager> {
            Arc::new(self.builder().stream_retention(chunks).open().await.unwrap())
        }
    }

    async fn harness() -> Pooled {
        Pooled::new()
    }

    helix_agents_conformance::stream_suite!(harness);
}

/// More sessions grow concurrently than the pooler has connections, so the appends of each session
/// use several of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrently_appended_logs_are_complete() {
    let pooled = Pooled::new();
    let (here, there) = (pooled.open().await, pooled.open().await);
    let grow = async |number: usize| {
        let store = if number.is_multiple_of(2) { &here } else { &there };
        let session = id(&format!("s{number}"));
        let mut position = create(store, &session).await;
        for append in 0..20 {
            add(store, &session, &mut position, &format!("a{append}")).await;
        }
        let expected: Vec<String> = std::iter::once("first".to_owned())
            .chain((0..20).map(|append| format!("a{append}")))
            .collect();
        assert_eq!(ids(store, &session).await, expected);
    };
    futures_util::future::join_all((0..24).map(grow)).await;
}

/// The server itself keeps the statement names that it receives, like such a pooler.
#[tokio::test]
async fn the_pooler_option_also_works_without_a_pooler() {
    let database = Database::new();
    let store = database.builder().behind_transaction_pooler(true).open().await.unwrap();
    let mut position = create(&store, &id("s")).await;
    add(&store, &id("s"), &mut position, "a").await;
    assert_eq!(ids(&store, &id("s")).await, ["first", "a"]);
}

/// In session mode, settings and notifications stay with the store's connection.
#[tokio::test]
async fn a_session_pooler_needs_no_option() {
    let database = Database::new();
    let pooler = servers::pgbouncer();
    let (server, _) = pooler.rsplit_once('/').unwrap();
    let url = format!("{server}/session?application_name={}", database.name);
    let builder = PostgresStore::builder(&url).schema(&database.schema).connections(2);
    let store = builder.poll_interval(Duration::from_secs(3600)).open().await.unwrap();
    let mut reader = streams(&store).read(&id("s"), 1).await.unwrap();
    let others = database.open().await;
    for number in 1..=3 {
        streams(&others)
            .append_chunks(batch_id(), &id("s"), None, vec![text(&id("s"), "x")])
            .await
            .unwrap();
        assert_eq!(within(reader.next()).await.unwrap().unwrap().seq, number);
    }
    let mut position = create(&store, &id("s")).await;
    add(&store, &id("s"), &mut position, "a").await;
    assert_eq!(ids(&store, &id("s")).await, ["first", "a"]);
}

#[tokio::test]
async fn an_unknown_pooler_kind_in_a_url_is_refused() {
    let database = Database::new();
    let url = format!("{}&pooler=magic", database.url);
    refused(PostgresStore::builder(&url), ErrorCode::ConfigInvalid).await;
}
