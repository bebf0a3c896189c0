//! A proxy in front of Temporal's server that requires TLS, client certificates or API keys.

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

/// The gRPC status code for a missing or wrong key.
const UNAUTHENTICATED: &str = "16";

/// The required key and the received requests.
#[derive(Default)]
struct AccessLog {
    /// The required API key, if any.
    key: Mutex<Option<String>>,
    requests: Mutex<Vec<String>>,
}

/// A server configuration without a certificate.
type Unsigned = ConfigBuilder<ServerConfig, WantsServerCert>;

/// The proxy, which stops when dropped.
pub(crate) struct Door {
    pub(crate) authority: Authority,
    port: u16,
    book: Arc<AccessLog>,
    task: AbortHandle,
}

impl Door {
    /// Starts a proxy that requires client certificates of its authority.
    pub(crate) async fn for_certificates() -> Self {
        let authority = Authority::new();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(authority.root()).unwrap()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        let config = config().with_client_cert_verifier(clients.build().unwrap());
        Self::open(authority, config, None).await
    }

    /// Starts a proxy that requires this API key.
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
        let book = Arc::new(AccessLog { key: Mutex::new(key), ..AccessLog::default() });
        let task = tokio::spawn(answer(listener, tls, Arc::clone(&book))).abort_handle();
        Self { authority, port, book, task }
    }

    /// Replaces the required API key.
    pub(crate) fn change_key(&self, key: &str) {
        *self.book.key.lock().unwrap() = Some(key.to_owned());
    }

    /// Returns the paths of the called methods.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.book.requests.lock().unwrap().clone()
    }

    /// Returns TLS options that trust this authority.
    pub(crate) fn trusting(authority: &Authority) -> TlsOptions {
        let root = std::fs::read(authority.root()).unwrap();
        TlsOptions::builder().server_root_ca_cert(root).build()
    }

    /// Returns TLS options with a client certificate of this authority.
    pub(crate) fn signed_by(&self, authority: &Authority) -> TlsOptions {
        let (certificate, key) = authority.sign("client");
        let [certificate, key] = [certificate, key].map(|path| std::fs::read(path).unwrap());
        let client = ClientTlsOptions::builder().client_cert(certificate).client_private_key(key);
        let mut tls = Self::trusting(&self.authority);
        tls.client_tls_options = Some(client.build());
        tls
    }

    /// Returns connection options for this proxy.
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

async fn answer(listener: TcpListener, tls: TlsAcceptor, book: Arc<AccessLog>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        tokio::spawn(forward(stream, tls.clone(), Arc::clone(&book)));
    }
}

/// Forwards the requests of one client to the server, and the responses back.
async fn forward(stream: TcpStream, tls: TlsAcceptor, book: Arc<AccessLog>) {
    // A client without the required certificate is rejected.
    let Ok(stream) = tls.accept(stream).await else { return };
    let behind = servers::temporal().replace("http://", "");
    let behind = TokioIo::new(TcpStream::connect(behind).await.unwrap());
    let (server, connection) =
        client::conn::http2::handshake(TokioExecutor::new(), behind).await.unwrap();
    tokio::spawn(connection);
    let service = service_fn(move |request: Request<Incoming>| {
        let (mut server, is_allowed) = (server.clone(), book.allows(&request));
        async move {
            if !is_allowed {
                return Ok(refusal());
            }
            server.send_request(request).await.map(|answer| answer.map(Either::Left))
        }
    });
    let serving = server::conn::http2::Builder::new(TokioExecutor::new());
    // Errors at the end of a connection do not matter.
    drop(serving.serve_connection(TokioIo::new(stream), service).await);
}

impl AccessLog {
    /// Records a request. Returns `true` if it has the required key.
    fn allows(&self, request: &Request<Incoming>) -> bool {
        self.requests.lock().unwrap().push(request.uri().path().to_owned());
        let key = self.key.lock().unwrap();
        let Some(key) = key.as_ref() else { return true };
        request.headers().get(AUTHORIZATION).is_some_and(|value| value == &format!("Bearer {key}"))
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
