//! A door before Temporal's server: TLS, certificates of clients, and keys, as operators put them there.

use std::sync::{Arc, Mutex};

use helix_agents_runtime_temporal::options::{
    ClientTlsOptions, ConnectionOptions, TlsOptions, Url,
};
use helix_agents_testkit::certificates::Authority;
use helix_agents_testkit::servers;
use http_body_util::{Either, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Request, Response, client, server};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{WantsServerCert, WebPkiClientVerifier};
use tokio_rustls::rustls::{ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier};

/// What the server says of who has no key, in the numbers of gRPC.
const UNAUTHENTICATED: &str = "16";

/// Who may come in, and what they asked for.
#[derive(Default)]
struct Book {
    /// The key that opens, if one is needed.
    key: Mutex<Option<String>>,
    asked: Mutex<Vec<String>>,
}

/// What a server says of itself before it has a certificate.
type Unsigned = ConfigBuilder<ServerConfig, WantsServerCert>;

/// The door, which is gone when this is dropped.
pub(crate) struct Door {
    pub(crate) authority: Authority,
    port: u16,
    book: Arc<Book>,
    task: AbortHandle,
}

impl Door {
    /// One for clients with a certificate of its authority.
    pub(crate) async fn for_certificates() -> Self {
        let authority = Authority::new();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority.root()).unwrap()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        let config = config().with_client_cert_verifier(clients.build().unwrap());
        Self::open(authority, config, None).await
    }

    /// One for clients with this key.
    pub(crate) async fn for_key(key: &str) -> Self {
        Self::open(Authority::new(), config().with_no_client_auth(), Some(key.to_owned())).await
    }

    async fn open(authority: Authority, config: Unsigned, key: Option<String>) -> Self {
        let (certificate, secret) = authority.sign("server");
        let chain = vec![CertificateDer::from_pem_file(certificate).unwrap()];
        let secret = PrivateKeyDer::from_pem_file(secret).unwrap();
        let mut config = config.with_single_cert(chain, secret).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let tls = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let book = Arc::new(Book { key: Mutex::new(key), ..Book::default() });
        let task = tokio::spawn(answer(listener, tls, Arc::clone(&book))).abort_handle();
        Self { authority, port, book, task }
    }

    /// From now on this key opens, and no other.
    pub(crate) fn change_key(&self, key: &str) {
        *self.book.key.lock().unwrap() = Some(key.to_owned());
    }

    /// The methods that were called, by their paths.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.book.asked.lock().unwrap().clone()
    }

    /// How a client comes to it that trusts this authority.
    pub(crate) fn trusting(authority: &Authority) -> TlsOptions {
        let root = std::fs::read(authority.root()).unwrap();
        TlsOptions::builder().server_root_ca_cert(root).build()
    }

    /// How a client comes to it that has a certificate of this authority.
    pub(crate) fn signed_by(&self, authority: &Authority) -> TlsOptions {
        let (certificate, key) = authority.sign("client");
        let [certificate, key] = [certificate, key].map(|it| std::fs::read(it).unwrap());
        let client = ClientTlsOptions::builder().client_cert(certificate).client_private_key(key);
        let mut tls = Self::trusting(&self.authority);
        tls.client_tls_options = Some(client.build());
        tls
    }

    /// What a runtime is told, to come to it so.
    pub(crate) fn reached_by(&self, tls: TlsOptions, key: Option<&str>) -> ConnectionOptions {
        let target = Url::parse(&format!("https://localhost:{}", self.port)).unwrap();
        let key = key.map(str::to_owned);
        ConnectionOptions::new(target).tls_options(tls).maybe_api_key(key).build()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn config() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    builder.with_safe_default_protocol_versions().unwrap()
}

async fn answer(listener: TcpListener, tls: TlsAcceptor, book: Arc<Book>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(let_in(stream, tls.clone(), Arc::clone(&book)));
    }
}

/// Hands on what one client says to the server, and what that answers.
async fn let_in(stream: TcpStream, tls: TlsAcceptor, book: Arc<Book>) {
    // Who shows no certificate that is wanted comes no further.
    let Ok(stream) = tls.accept(stream).await else { return };
    let behind = servers::temporal().replace("http://", "");
    let behind = TokioIo::new(TcpStream::connect(behind).await.unwrap());
    let (server, connection) =
        client::conn::http2::handshake(TokioExecutor::new(), behind).await.unwrap();
    tokio::spawn(connection);
    let service = service_fn(move |request: Request<Incoming>| {
        let (mut server, opens) = (server.clone(), book.opens(&request));
        async move {
            if !opens {
                return Ok(refusal());
            }
            server.send_request(request).await.map(|answer| answer.map(Either::Left))
        }
    });
    let serving = server::conn::http2::Builder::new(TokioExecutor::new());
    // How a client leaves is its own affair.
    drop(serving.serve_connection(TokioIo::new(stream), service).await);
}

impl Book {
    /// Notes who asks for what, and says whether they may.
    fn opens(&self, request: &Request<Incoming>) -> bool {
        self.asked.lock().unwrap().push(request.uri().path().to_owned());
        let key = self.key.lock().unwrap();
        let Some(key) = key.as_ref() else { return true };
        request.headers().get(AUTHORIZATION).is_some_and(|said| said == &format!("Bearer {key}"))
    }
}

fn refusal() -> Response<Either<Incoming, Empty<Bytes>>> {
    Response::builder()
        .header(CONTENT_TYPE, "application/grpc")
        .header("grpc-status", UNAUTHENTICATED)
        .header("grpc-message", "Request unauthorized.")
        .body(Either::Right(Empty::new()))
        .unwrap()
}
