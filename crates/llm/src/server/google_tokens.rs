//! Access tokens of Google Cloud, for Vertex AI.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gcp_auth::{CustomServiceAccount, TokenProvider};
use helix_agents_core::error::{Error, ErrorCode, Result};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::Authenticator;
use crate::secret::ApiKey;

/// The permission that tokens have.
const SCOPES: &[&str] = &["https://www.googleapis.com/auth/cloud-platform"];

/// The time limit for a token.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The access tokens of Google Cloud, for Vertex AI. A token is kept until shortly before it expires.
///
/// ```
/// use helix_agents_llm::{GoogleTokens, ModelServerOptions};
///
/// let options = ModelServerOptions::vertex_gemini("gemini", "my-project", "global")
///     .with_authenticator(GoogleTokens::new());
/// ```
#[derive(Default)]
pub struct GoogleTokens {
    /// The contents of the key file of a service account. Without it, the credentials of the machine are used.
    account: Option<ApiKey>,
    source: Mutex<Source>,
}

/// The source of the tokens.
#[derive(Default)]
struct Source {
    /// Keeps each token until it expires. `None` after a token was discarded and, with the credentials of the machine,
    /// before the first call.
    provider: Option<Arc<dyn TokenProvider>>,
    /// The last token of the provider.
    last: Option<ApiKey>,
}

impl GoogleTokens {
    /// Uses the credentials of the machine, which are looked for before the first call: the file that the environment
    /// variable `GOOGLE_APPLICATION_CREDENTIALS` names, the file that `gcloud auth application-default login` writes,
    /// the metadata server of Google Cloud, and the command `gcloud`.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses a service account. `key` is the contents of its key file.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the key is not valid.
    pub fn of_service_account(key: &str) -> Result<Self> {
        let provider = Some(of_key(key)?);
        let source = Mutex::new(Source { provider, last: None });
        Ok(Self { account: Some(ApiKey::new(key)), source })
    }

    async fn fetch(&self) -> Result<ApiKey> {
        let provider = self.provider().await?;
        let token = provider.token(SCOPES).await.map_err(no_token)?;
        let token = ApiKey::new(token.as_str());
        self.source.lock().await.last = Some(token.clone());
        Ok(token)
    }

    async fn provider(&self) -> Result<Arc<dyn TokenProvider>> {
        let mut source = self.source.lock().await;
        if let Some(provider) = &source.provider {
            return Ok(Arc::clone(provider));
        }
        let provider = match &self.account {
            Some(key) => of_key(key.expose())?,
            None => gcp_auth::provider().await.map_err(|error| match error {
                gcp_auth::Error::NoAuthMethod(..) => {
                    let message = "this machine has no credentials of Google Cloud";
                    Error::new(ErrorCode::ProviderUnauthorized, message).with_source(error)
                }
                error => invalid_credentials(error),
            })?,
        };
        source.provider = Some(Arc::clone(&provider));
        Ok(provider)
    }
}

fn of_key(key: &str) -> Result<Arc<dyn TokenProvider>> {
    let account = CustomServiceAccount::from_json(key).map_err(invalid_credentials)?;
    Ok(Arc::new(account))
}

#[async_trait]
impl Authenticator for GoogleTokens {
    async fn token(&self) -> Result<ApiKey> {
        timeout(TIMEOUT, self.fetch()).await.unwrap_or_else(|_| {
            let message = format!("Google Cloud sent no access token for {} s", TIMEOUT.as_secs());
            Err(Error::new(ErrorCode::ProviderTimeout, message))
        })
    }

    async fn discard(&self, token: &ApiKey) {
        let mut source = self.source.lock().await;
        // Another call may have replaced the token already.
        if source.last.as_ref() == Some(token) {
            *source = Source::default();
        }
    }
}

impl fmt::Debug for GoogleTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GoogleTokens").finish_non_exhaustive()
    }
}

fn invalid_credentials(error: gcp_auth::Error) -> Error {
    let message = "the credentials of Google Cloud are not valid";
    Error::new(ErrorCode::ConfigInvalid, message).with_source(error)
}

fn no_token(error: gcp_auth::Error) -> Error {
    match error {
        // The server sent an error status.
        gcp_auth::Error::Str(_) => {
            let message = "Google Cloud refused to issue an access token for the credentials";
            Error::new(ErrorCode::ProviderUnauthorized, message).with_source(error)
        }
        error => {
            let message = "Google Cloud issued no access token";
            Error::new(ErrorCode::ProviderUnavailable, message).with_source(error)
        }
    }
}
