//! TLS, with certificates of a root that only the test knows.

use futures_util::StreamExt as _;

use helix_agents_core::error::ErrorCode;
use helix_agents_store_redis::{RedisBuilder, RedisStore};
use helix_agents_testkit::certificates::Authority;
use helix_agents_testkit::gate::within;
use helix_agents_testkit::ids::batch_id;

use super::server::{Server, free_port};
use super::support::{add, create, id, ids, streams, text};

/// A server that speaks TLS on a port of its own.
struct Secured {
    _server: Server,
    port: u16,
}

impl Secured {
    /// `clients` says whether these have to have a certificate, too.
    fn start(authority: &Authority, clients: &str) -> Self {
        let port = free_port();
        let (certificate, key) = authority.sign("server");
        let root = authority.root();
        let [certificate, key, root] = [&certificate, &key, &root].map(|it| it.to_str().unwrap());
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

/// That opening fails, and says this.
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
async fn a_server_whose_root_is_named_is_trusted_and_no_other() {
    let authority = Authority::new();
    let server = Secured::start(&authority, "no");
    let builder = server.builder("localhost", &root(&authority));
    let store = builder.clone().open().await.unwrap();
    let mut reader = streams(&store).read(&id("s"), 1).await.unwrap();
    let mut position = create(&store, &id("s")).await;
    add(&store, &id("s"), &mut position, "a").await;
    assert_eq!(ids(&store, &id("s")).await, ["first", "a"]);
    let other = builder.open().await.unwrap();
    streams(&other).append(batch_id(), &id("s"), None, vec![text(&id("s"), "x")]).await.unwrap();
    assert_eq!(within(reader.next()).await.unwrap().unwrap().seq, 1);

    refused(server.builder("localhost", &root(&Authority::new())), "UnknownIssuer").await;
    // What the system knows is not enough, and a certificate is for the name that it says.
    refused(server.builder("localhost", ""), "UnknownIssuer").await;
    refused(server.builder("127.0.0.1", &root(&authority)), "not valid for name").await;
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_it() {
    let authority = Authority::new();
    let server = Secured::start(&authority, "yes");
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
async fn certificates_that_cannot_be_are_refused() {
    let authority = Authority::new();
    let (certificate, key) = authority.sign("client");
    let (certificate, key) = (certificate.display(), key.display());
    for (url, says) in [
        ("rediss://localhost?sslrootcert=/no/such/file".to_owned(), "cannot be read"),
        (format!("rediss://localhost?sslcert={certificate}"), "need each other"),
        (format!("rediss://localhost?sslcert={key}&sslkey={certificate}"), "cannot be used"),
        (format!("redis://localhost?{}", root(&authority)), "rediss://"),
    ] {
        refused(RedisStore::builder(&url), says).await;
    }
}
