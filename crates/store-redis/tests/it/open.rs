//! Opening a store: rejected configurations and reported settings.

use std::time::Duration;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::guarantee::GuaranteeKind;
use helix_agents_core::store::StateStore as _;
use helix_agents_store_redis::{Persistence, RedisBuilder, RedisStore};
use helix_agents_testkit::servers;

use super::server::Server;
use super::support::{Keyspace, create, id, ids, streams};

async fn refused(builder: RedisBuilder, code: ErrorCode) -> String {
    let error = builder.open().await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_server_that_evicts_keys_is_refused() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let server = Server::with(&["--maxmemory-policy", policy]);
        let keyspace = server.keyspace();
        let text = refused(keyspace.builder(), ErrorCode::ConfigInvalid).await;
        assert!(text.contains("noeviction") && text.contains(policy), "{text}");
        assert!(keyspace.keys().is_empty());
        let inspection = keyspace.builder().inspect().await.unwrap();
        assert_eq!(inspection.settings.eviction, policy);
        assert_eq!(inspection.check().unwrap_err().code(), ErrorCode::ConfigInvalid);
    }
}

#[tokio::test]
async fn a_replica_is_refused() {
    let primary = Server::start();
    let replica = Server::start();
    let mut connection = replica.keyspace().server();
    let port = primary.port();
    redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port).exec(&mut connection).unwrap();
    refused(replica.keyspace().builder(), ErrorCode::StoreReadOnly).await;
}

#[tokio::test]
async fn an_invalid_url_or_prefix_is_refused() {
    for url in ["", "postgres://localhost", "redis://", "redis://localhost:x"] {
        let text = refused(RedisStore::builder(url), ErrorCode::ConfigInvalid).await;
        assert!(!text.contains("localhost"), "the URL may hold a password: {text}");
    }
    for prefix in ["", "a{b}", "a*"] {
        refused(Keyspace::new().builder().prefix(prefix), ErrorCode::ConfigInvalid).await;
    }
}

#[tokio::test]
async fn a_url_may_set_the_prefix_but_no_unknown_parameter() {
    let keyspace = Keyspace::new();
    create(&keyspace.store().await, &id("s")).await;
    let url = format!("{}?prefix={}", servers::redis(), keyspace.prefix());
    assert_eq!(ids(&RedisStore::open(&url).await.unwrap(), &id("s")).await, ["first"]);
    let url = format!("{}?prefix=other", servers::redis());
    let store = RedisStore::builder(&url).prefix(keyspace.prefix()).open().await.unwrap();
    assert_eq!(ids(&store, &id("s")).await, ["first"], "the builder overrides the URL");
    for options in ["?prefix=a{b}", "?schema=x", "?prefix=a&tls=yes"] {
        let url = format!("{}{options}", servers::redis());
        refused(RedisStore::builder(&url), ErrorCode::ConfigInvalid).await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_unavailable() {
    let mut server = Server::start();
    server.kill();
    refused(server.keyspace().builder(), ErrorCode::StoreUnavailable).await;
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_never_shown() {
    let server = Server::with(&["--requirepass", "correct horse"]);
    for url in [server.url(), format!("redis://:open%20sesame@127.0.0.1:{}", server.port())] {
        let builder = RedisStore::builder(&url);
        assert!(!format!("{builder:?}").contains("sesame"));
        let text = refused(builder, ErrorCode::ConfigInvalid).await;
        assert!(!text.contains("sesame"), "{text}");
    }
    let url = format!("redis://:correct%20horse@127.0.0.1:{}", server.port());
    let store = RedisStore::open(&url).await.unwrap();
    create(&store, &id("s")).await;
}

#[tokio::test]
async fn data_of_a_newer_version_are_not_changed() {
    let keyspace = Keyspace::new();
    let key = format!("{}:{{index}}:schema", keyspace.prefix());
    redis::cmd("SET").arg(&key).arg("3").exec(&mut keyspace.server()).unwrap();
    refused(keyspace.builder(), ErrorCode::StoreNewer).await;
    redis::cmd("SET").arg(&key).arg("a picture").exec(&mut keyspace.server()).unwrap();
    refused(keyspace.builder(), ErrorCode::StoreForeign).await;
    assert_eq!(keyspace.keys(), [key]);
}

#[tokio::test]
async fn guarantees_and_warnings_follow_the_settings_of_the_server() {
    let cases: [(&[&str], Persistence, bool); 4] = [
        (&["--appendonly", "yes", "--appendfsync", "always"], Persistence::Always, true),
        (&["--appendonly", "yes", "--appendfsync", "everysec"], Persistence::EverySecond, false),
        (&["--appendonly", "yes", "--appendfsync", "no"], Persistence::SomeTime, false),
        (&["--appendonly", "no"], Persistence::Snapshots, false),
    ];
    for (settings, persistence, survives) in cases {
        let server = Server::with(settings);
        let keyspace = server.keyspace();
        let store = keyspace.store().await;
        assert_eq!(store.settings().persistence, persistence);
        let guarantees = store.guarantees();
        let power = guarantees
            .iter()
            .find(|guarantee| guarantee.promise == GuaranteeKind::SurvivesPowerLoss)
            .unwrap();
        assert_eq!(power.holds, survives, "{power:?}");
        create(&store, &id("s")).await;
        let inspection = keyspace.builder().inspect().await.unwrap();
        assert_eq!((inspection.schema, inspection.sessions), (Some(2), 1));
        assert_eq!(inspection.guarantees(), guarantees);
        // One finding is about the missing memory limit.
        let findings = keyspace.builder().diagnose().await.findings();
        assert_eq!(findings.len(), if survives { 1 } else { 2 }, "{findings:?}");
        assert!(findings.iter().all(|finding| finding.code == "server_settings"));
    }
}

#[tokio::test]
async fn reading_and_inspecting_change_nothing() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    assert_eq!(store.head(&id("s")).await.unwrap(), None);
    let inspection = keyspace.builder().inspect().await.unwrap();
    assert_eq!((inspection.schema, inspection.sessions), (None, 0));
    assert!(keyspace.keys().is_empty());
}

#[tokio::test]
async fn a_closed_store_fails_new_and_waiting_operations() {
    use futures_util::StreamExt as _;
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    create(&store, &id("s")).await;
    let mut reader = streams(&store).read(&id("s"), 1).await.unwrap();
    let waiting = tokio::spawn(async move { reader.next().await });
    tokio::task::yield_now().await;
    store.clone().close().await;
    assert_eq!(store.head(&id("s")).await.unwrap_err().code(), ErrorCode::Closed);
    let heard = tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap();
    assert_eq!(heard.unwrap().unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(ids(&keyspace.store().await, &id("s")).await, ["first"]);
}
