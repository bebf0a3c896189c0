//! The contents of a URL: a server, its certificates, and the prefix of the store's keys.

use redis::{Client, ClientTlsConfig, TlsCertificates};
use rustls::crypto::{CryptoProvider, aws_lc_rs};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::config::Config;
use crate::keys::Keys;

/// The prefix of stores for which neither the builder nor the URL sets one.
const DEFAULT_PREFIX: &str = "helix";

/// The location of a store.
pub(crate) struct Location {
    pub(crate) keys: Keys,
    pub(crate) client: Client,
    /// The certificates for nodes of a cluster that the URL does not name. `None` without TLS.
    pub(crate) certificates: Option<TlsCertificates>,
}

/// The query parameters of the URL.
#[derive(Default)]
struct Options {
    prefix: Option<String>,
    root: Option<Vec<u8>>,
    certificate: Option<Vec<u8>>,
    key: Option<Vec<u8>>,
}

impl Location {
    /// Parses the URL. Does not contact the server yet.
    pub(crate) fn parse(config: &Config) -> Result<Self> {
        let mut url = redis::parse_redis_url(&config.url).ok_or_else(invalid_url)?;
        let options = Options::read(url.query_pairs())?;
        url.set_query(None);
        let keys = Keys::new(
            config.prefix.as_deref().or(options.prefix.as_deref()).unwrap_or(DEFAULT_PREFIX),
        )?;
        let plain = || Client::open(url.as_str()).map_err(|error| invalid_url().with_source(error));
        if !matches!(url.scheme(), "rediss" | "valkeys") {
            return match options.certificates()? {
                None => Ok(Self { keys, client: plain()?, certificates: None }),
                Some(_) => Err(invalid("certificates require a URL that begins with rediss://")),
            };
        }
        let certificates = options.certificates()?;
        let certificates =
            certificates.unwrap_or(TlsCertificates { client_tls: None, root_cert: None });
        install_crypto_provider();
        // The URL without certificates is valid, so a later failure is due to the certificates.
        plain()?;
        let client = Client::build_with_tls(url.as_str(), certificates.clone());
        let client = client.map_err(|error| {
            invalid("a certificate or key in the URL of Redis cannot be used").with_source(error)
        })?;
        Ok(Self { keys, client, certificates: Some(certificates) })
    }
}

impl Options {
    fn read<'u, N: AsRef<str> + 'u, V: AsRef<str> + 'u>(
        pairs: impl Iterator<Item = (N, V)>,
    ) -> Result<Self> {
        let mut options = Self::default();
        for (name, value) in pairs {
            let (name, value) = (name.as_ref(), value.as_ref());
            match name {
                "prefix" => options.prefix = Some(value.to_owned()),
                "sslrootcert" => options.root = Some(file(name, value)?),
                "sslcert" => options.certificate = Some(file(name, value)?),
                "sslkey" => options.key = Some(file(name, value)?),
                _ => {
                    return Err(invalid(
                        "the URL of Redis has an unknown parameter; the parameters are `prefix`, \
                         `sslrootcert`, `sslcert` and `sslkey`",
                    )
                    .with_context("parameter", name));
                }
            }
        }
        Ok(options)
    }

    fn certificates(self) -> Result<Option<TlsCertificates>> {
        let client_tls = match (self.certificate, self.key) {
            (Some(client_cert), Some(client_key)) => {
                Some(ClientTlsConfig { client_cert, client_key })
            }
            (None, None) => None,
            _ => return Err(invalid("`sslcert` and `sslkey` must be used together")),
        };
        let is_any = client_tls.is_some() || self.root.is_some();
        Ok(is_any.then_some(TlsCertificates { client_tls, root_cert: self.root }))
    }
}

/// Reads a file that the URL names.
fn file(option: &str, path: &str) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| {
        let message = "a file in the URL of Redis cannot be read";
        invalid(message).with_context("option", option).with_source(error)
    })
}

/// Installs a default crypto provider for the process, unless it has one. The driver uses it.
fn install_crypto_provider() {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have installed one meanwhile, which is equally good.
        drop(aws_lc_rs::default_provider().install_default());
    }
}

fn invalid_url() -> Error {
    invalid(
        "the URL of Redis is invalid; its format is redis://[user][:password@]host[:port][/database], \
         or rediss:// for TLS",
    )
}

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorCode::ConfigInvalid, message)
}
