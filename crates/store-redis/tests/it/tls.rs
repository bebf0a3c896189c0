//! TLS with certificates of a root that only the test knows.

use futures_util::StreamExt as _;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_store_redis::{RedisBuilder, RedisStore};
use helix_agents_test::within;
use helix_agents_testkit::certificates::Authority;

use super::server::{Server, free_port};
use super::support::{add, create, id, ids, streams, text};

/// A server with a TLS port.
struct TlsServer {
    _server: Server,
    port: u16,
}

impl TlsServer {
    /// Starts a server. `clients` determines whether clients need a certificate.
    fn start(authority: &Authority, clients: &str) -> Self {
        let port = free_port();
        let (certificate, key) = authority.sign("server");
        let root = authority.root();
        let [certificate, key, root] =
            [&certificate, &key, &root].map(|path| path.to_str().unwrap());
        let server = Server::with(&[
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            certificate,
            "--tls-key-file",
            key,
            "--tls-ca-cert-file",
            root,
            "--tls-auth-clients",
            clients,
        ]);
        Self { _server: server, port }
    }

    fn builder(&self, host: &str, options: &str) -> RedisBuilder {
        let url = format!("rediss://{host}:{}?{options}", self.port);
        RedisStore::builder(&url)
    }
}

/// Asserts that opening fails with an error that contains `says`.
async fn refused(builder: RedisBuilder, says: &str) {
    let error = within(builder.open()).await.unwrap_err();
    let text = format!("{error:?}");
    assert_eq!(error.code(), ErrorCode::ConfigInvalid, "{text}");
    assert!(text.contains(says), "{text}");
}

fn root(authority: &Authority) -> String {
    format!("sslrootcert={}", authority.root().display())
}

#[tokio::test]
async fn only_a_server_with_the_given_root_is_trusted() {
    let authority = Authority::new();
    let server = TlsServer::start(&authority, "no");
    let builder = server.builder("localhost", &root(&authority));
    let store = builder.clone().open().await.unwrap();
    let mut reader = streams(&store).read(&id("s"), 1).await.unwrap();
    let mut position = create(&store, &id("s")).await;
    add(&store, &id("s"), &mut position, "a").await;
    assert_eq!(ids(&store, &id("s")).await, ["first", "a"]);
    let other = builder.open().await.unwrap();
    streams(&other)
        .append_chunks(batch_id(), &id("s"), None, vec![text(&id("s"), "x")])
        .await
        .unwrap();
    assert_eq!(within(reader.next()).await.unwrap().unwrap().seq, 1);

    refused(server.builder("localhost", &root(&Authority::new())), "UnknownIssuer").await;
    // The system's roots do not include the test's root, and a certificate is only valid for its
    // host name.
    refused(server.builder("localhost", ""), "UnknownIssuer").await;
    refused(server.builder("127.0.0.1", &root(&authority)), "not valid for name").await;
}

#[tokio::test]
async fn a_client_certificate_is_sent_on_request() {
    let authority = Authority::new();
    let server = TlsServer::start(&authority, "yes");
    let root = root(&authority);
    let with = |authority: &Authority| {
        let (certificate, key) = authority.sign("client");
        format!("{root}&sslcert={}&sslkey={}", certificate.display(), key.display())
    };
    let store = server.builder("localhost", &with(&authority)).open().await.unwrap();
    create(&store, &id("s")).await;
    assert_eq!(ids(&store, &id("s")).await, ["first"]);

    refused(server.builder("localhost", &root), "CertificateRequired").await;
    refused(server.builder("localhost", &with(&Authority::new())), "UnknownCA").await;
}

#[tokio::test]
async fn invalid_certificate_options_are_refused() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("client");
    let (certificate, key) = (certificate.display(), key.display());
    for (url, says) in [
        ("rediss://localhost?sslrootcert=/no/such/file".to_owned(), "cannot be read"),
        (format!("rediss://localhost?sslcert={certificate}"), "must be used together"),
        (format!("rediss://localhost?sslcert={key}&sslkey={certificate}"), "cannot be used"),
        (format!("redis://localhost?{}", root(&authority)), "rediss://"),
    ] {
        refused(RedisStore::builder(&url), says).await;
    }
}
