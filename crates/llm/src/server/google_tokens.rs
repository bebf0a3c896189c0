//! Access tokens of Google Cloud, for Vertex AI.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gcp_auth::{CustomServiceAccount, TokenProvider};
use helix_agents_core::error::{Error, ErrorCode, Result};
use tokio::sync::OnceCell;
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
pub struct GoogleTokens(OnceCell<Arc<dyn TokenProvider>>);

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
        let account = CustomServiceAccount::from_json(key).map_err(invalid_credentials)?;
        Ok(Self(OnceCell::new_with(Some(Arc::new(account)))))
    }

    async fn fetch(&self) -> Result<ApiKey> {
        let provider = self.0.get_or_try_init(async || {
            gcp_auth::provider().await.map_err(|error| match error {
                gcp_auth::Error::NoAuthMethod(..) => {
                    let message = "this machine has no credentials of Google Cloud";
                    Error::new(ErrorCode::ProviderUnauthorized, message).with_source(error)
                }
                error => invalid_credentials(error),
            })
        });
        let token = provider.await?.token(SCOPES).await.map_err(no_token)?;
        Ok(ApiKey::new(token.as_str()))
    }
}

#[async_trait]
impl Authenticator for GoogleTokens {
    async fn token(&self) -> Result<ApiKey> {
        timeout(TIMEOUT, self.fetch()).await.unwrap_or_else(|_| {
            let message = format!("Google Cloud sent no access token for {} s", TIMEOUT.as_secs());
            Err(Error::new(ErrorCode::ProviderTimeout, message))
        })
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
