//! What is refused before anything is written, and what is told.

use std::time::Duration;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::guarantee::GuaranteeKind;
use helix_agents_core::store::StateStore as _;
use helix_agents_store_redis::{Persistence, RedisBuilder, RedisStore};
use helix_agents_testkit::servers;

use super::server::Server;
use super::support::{Corner, create, id, ids, streams};

async fn refused(builder: RedisBuilder, code: ErrorCode) -> String {
    let error = builder.open().await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    error.to_string()
}

#[tokio::test]
async fn a_server_that_would_throw_away_parts_of_logs_is_refused() {
    for policy in ["allkeys-lru", "volatile-ttl"] {
        let server = Server::with(&["--maxmemory-policy", policy]);
        let corner = server.corner();
        let text = refused(corner.builder(), ErrorCode::ConfigInvalid).await;
        assert!(text.contains("noeviction") && text.contains(policy), "{text}");
        assert!(corner.keys().is_empty());
        let inspection = corner.builder().inspect().await.unwrap();
        assert_eq!(inspection.settings.eviction, policy);
        assert_eq!(inspection.check().unwrap_err().code(), ErrorCode::ConfigInvalid);
    }
}

#[tokio::test]
async fn a_replica_is_refused() {
    let primary = Server::start();
    let replica = Server::start();
    let mut connection = replica.corner().server();
    let port = primary.port();
    redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port).exec(&mut connection).unwrap();
    refused(replica.corner().builder(), ErrorCode::StoreReadOnly).await;
}

#[tokio::test]
async fn what_cannot_be_a_server_is_refused() {
    for url in ["", "postgres://localhost", "redis://", "redis://localhost:x"] {
        let text = refused(RedisStore::builder(url), ErrorCode::ConfigInvalid).await;
        assert!(!text.contains("localhost"), "the URL may hold a password: {text}");
    }
    for prefix in ["", "a{b}", "a*"] {
        refused(Corner::new().builder().prefix(prefix), ErrorCode::ConfigInvalid).await;
    }
}

#[tokio::test]
async fn a_url_may_name_the_prefix_and_nothing_else() {
    let corner = Corner::new();
    create(&corner.store().await, &id("s")).await;
    let url = format!("{}?prefix={}", servers::redis(), corner.prefix());
    assert_eq!(ids(&RedisStore::open(&url).await.unwrap(), &id("s")).await, ["first"]);
    for options in ["?prefix=a{b}", "?schema=x", "?prefix=a&tls=yes"] {
        let url = format!("{}{options}", servers::redis());
        refused(RedisStore::builder(&url), ErrorCode::ConfigInvalid).await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_unavailable() {
    let mut server = Server::start();
    server.kill();
    refused(server.corner().builder(), ErrorCode::StoreUnavailable).await;
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
async fn what_a_newer_version_wrote_is_left_alone() {
    let corner = Corner::new();
    let key = format!("{}:{{index}}:schema", corner.prefix());
    redis::cmd("SET").arg(&key).arg("2").exec(&mut corner.server()).unwrap();
    refused(corner.builder(), ErrorCode::StoreNewer).await;
    redis::cmd("SET").arg(&key).arg("a picture").exec(&mut corner.server()).unwrap();
    refused(corner.builder(), ErrorCode::StoreForeign).await;
    assert_eq!(corner.keys(), [key]);
}

#[tokio::test]
async fn a_store_says_what_the_settings_of_its_server_mean() {
    let cases: [(&[&str], Persistence, bool); 4] = [
        (&["--appendonly", "yes", "--appendfsync", "always"], Persistence::Always, true),
        (&["--appendonly", "yes", "--appendfsync", "everysec"], Persistence::EverySecond, false),
        (&["--appendonly", "yes", "--appendfsync", "no"], Persistence::SomeTime, false),
        (&["--appendonly", "no"], Persistence::Snapshots, false),
    ];
    for (settings, persistence, survives) in cases {
        let server = Server::with(settings);
        let corner = server.corner();
        let store = corner.store().await;
        assert_eq!(store.settings().persistence, persistence);
        let guarantees = store.guarantees();
        let power =
            guarantees.iter().find(|it| it.promise == GuaranteeKind::SurvivesPowerLoss).unwrap();
        assert_eq!(power.holds, survives, "{power:?}");
        create(&store, &id("s")).await;
        let inspection = corner.builder().inspect().await.unwrap();
        assert_eq!((inspection.schema, inspection.sessions), (Some(1), 1));
        assert_eq!(inspection.guarantees(), guarantees);
        // One is about memory without a bound.
        let warnings = inspection.warnings();
        assert_eq!(warnings.len(), if survives { 1 } else { 2 }, "{warnings:?}");
    }
}

#[tokio::test]
async fn looking_changes_nothing() {
    let corner = Corner::new();
    let store = corner.store().await;
    assert_eq!(store.head(&id("s")).await.unwrap(), None);
    let inspection = corner.builder().inspect().await.unwrap();
    assert_eq!((inspection.schema, inspection.sessions), (None, 0));
    assert!(corner.keys().is_empty());
}

#[tokio::test]
async fn a_closed_store_says_so_to_whoever_asks_and_whoever_waits() {
    use futures_util::StreamExt as _;
    let corner = Corner::new();
    let store = corner.store().await;
    create(&store, &id("s")).await;
    let mut reader = streams(&store).read(&id("s"), 1).await.unwrap();
    let waiting = tokio::spawn(async move { reader.next().await });
    tokio::task::yield_now().await;
    store.clone().close().await;
    assert_eq!(store.head(&id("s")).await.unwrap_err().code(), ErrorCode::Closed);
    let heard = tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap();
    assert_eq!(heard.unwrap().unwrap_err().code(), ErrorCode::Closed);
    assert_eq!(ids(&corner.store().await, &id("s")).await, ["first"]);
}
