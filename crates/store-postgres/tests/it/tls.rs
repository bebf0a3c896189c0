//! TLS with certificates of a root that only the test knows.

use std::time::Duration;

use futures_util::StreamExt as _;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_store_postgres::{PostgresBuilder, PostgresStore};
use helix_agents_test::within;
use helix_agents_testkit::certificates::Authority;

use super::server::Server;
use super::support::{add, create, id, ids, streams, text};

fn builder(server: &Server, host: &str, options: &str) -> PostgresBuilder {
    let url = format!("postgres://postgres@{host}:{}/postgres?{options}", server.port());
    PostgresStore::builder(&url).connections(2)
}

/// Asserts that opening fails with an error that contains `says`.
async fn refused(builder: PostgresBuilder, says: &str) {
    let error = within(builder.open()).await.unwrap_err();
    let text = format!("{error:?}");
    assert_eq!(error.code(), ErrorCode::ConfigInvalid, "{text}");
    assert!(text.contains(says), "{text}");
}

fn verified(authority: &Authority) -> String {
    format!("sslmode=verify-full&sslrootcert={}", authority.root().display())
}

#[tokio::test]
async fn only_a_server_with_the_given_root_is_trusted() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("server");
    let settings = ["ssl=on", "ssl_cert_file=server.pem", "ssl_key_file=server.key"];
    let server = Server::with(&settings, &[&certificate, &key]);
    let trusting = builder(&server, "localhost", &verified(&authority));
    let store = trusting.clone().open().await.unwrap();
    // Only notifications wake this reader, so the test also covers the listening connection.
    let reading = trusting.poll_interval(Duration::from_secs(3600)).open().await.unwrap();
    let mut reader = streams(&reading).read(&id("s"), 1).await.unwrap();
    let mut position = create(&store, &id("s")).await;
    add(&store, &id("s"), &mut position, "a").await;
    assert_eq!(ids(&store, &id("s")).await, ["first", "a"]);
    streams(&store)
        .append_chunks(batch_id(), &id("s"), None, vec![text(&id("s"), "x")])
        .await
        .unwrap();
    assert_eq!(within(reader.next()).await.unwrap().unwrap().seq, 1);

    let stranger = Authority::new();
    refused(builder(&server, "localhost", &verified(&stranger)), "UnknownIssuer").await;
    refused(builder(&server, "localhost", "sslmode=verify-full"), "UnknownIssuer").await;
    // A certificate is only valid for its host name, unless the name is not checked.
    refused(builder(&server, "127.0.0.1", &verified(&authority)), "not valid for name").await;
    let ca_only = verified(&authority).replace("verify-full", "verify-ca");
    builder(&server, "127.0.0.1", &ca_only).open().await.unwrap();
}

#[tokio::test]
async fn a_client_certificate_is_sent_on_request() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("server");
    let root = authority.root();
    let settings =
        ["ssl=on", "ssl_cert_file=server.pem", "ssl_key_file=server.key", "ssl_ca_file=root.pem"];
    let folder = tempfile::tempdir().unwrap();
    let hba = folder.path().join("pg_hba.conf");
    std::fs::write(&hba, "hostssl all all all trust clientcert=verify-ca\n").unwrap();
    let server = Server::with(&settings, &[&certificate, &key, &root, &hba]);
    let (certificate, key) = authority.sign("client");
    let (certificate, key) = (certificate.display(), key.display());
    let trusting = verified(&authority);
    let options = format!("{trusting}&sslcert={certificate}&sslkey={key}");
    let store = builder(&server, "localhost", &options).open().await.unwrap();
    create(&store, &id("s")).await;
    assert_eq!(ids(&store, &id("s")).await, ["first"]);
    refused(builder(&server, "localhost", &trusting), "client certificate").await;
}

#[tokio::test]
async fn a_server_without_tls_is_refused_if_tls_is_required() {
    let url = format!("{}?sslmode=require", helix_agents_testkit::servers::postgres());
    refused(PostgresStore::builder(&url), "TLS").await;
}
