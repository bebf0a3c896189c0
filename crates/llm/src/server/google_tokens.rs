//! Access tokens of Google Cloud, for Vertex AI.

use std::fmt;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gcp_auth::{
    ConfigDefaultCredentials, CustomServiceAccount, GCloudAuthorizedUser, MetadataServiceAccount,
    TokenProvider,
};
use helix_agents_core::error::{Error, ErrorCode, Result};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::Authenticator;
use crate::secret::ApiKey;

#[cfg(test)]
mod tests;

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
pub struct GoogleTokens {
    credentials: Box<dyn Credentials>,
    source: Mutex<Source>,
}

/// The source of the tokens.
#[derive(Default)]
struct Source {
    /// The place of the credentials. It is kept for good, because other places may have other identities.
    place: Option<Place>,
    /// Keeps each token until it expires. `None` before the first call and after a token was discarded.
    provider: Option<Provider>,
    /// The last token of the provider.
    last: Option<ApiKey>,
}

type Provider = Arc<dyn TokenProvider>;

/// A place of credentials.
#[derive(Debug, Clone)]
enum Place {
    /// The contents of the key file of a service account.
    Key(ApiKey),
    /// The file that `GOOGLE_APPLICATION_CREDENTIALS` names.
    Variable,
    /// The file that `gcloud auth application-default login` writes.
    UserFile,
    MetadataServer,
    Gcloud,
}

/// Reads credentials. Tests replace it.
#[async_trait]
trait Credentials: Send + Sync {
    /// Returns the provider for the credentials at a place, or `None` if the environment variable is not set.
    async fn open(&self, place: &Place) -> Result<Option<Provider>, gcp_auth::Error>;
}

/// The credentials of this machine.
#[derive(Default)]
struct Machine {
    /// Held while the command `gcloud` runs.
    gcloud: Arc<Mutex<()>>,
}

#[async_trait]
impl Credentials for Machine {
    async fn open(&self, place: &Place) -> Result<Option<Provider>, gcp_auth::Error> {
        Ok(Some(match place {
            Place::Key(key) => Arc::new(CustomServiceAccount::from_json(key.expose())?),
            Place::Variable => match CustomServiceAccount::from_env()? {
                Some(account) => Arc::new(account),
                None => return Ok(None),
            },
            Place::UserFile => Arc::new(ConfigDefaultCredentials::new().await?),
            Place::MetadataServer => Arc::new(MetadataServiceAccount::new().await?),
            Place::Gcloud => {
                let user = run_gcloud(&self.gcloud, GCloudAuthorizedUser::new()).await?;
                Arc::new(Gcloud { user: Arc::new(user), running: Arc::clone(&self.gcloud) })
            }
        }))
    }
}

/// Takes tokens from the command `gcloud`.
struct Gcloud {
    user: Arc<GCloudAuthorizedUser>,
    running: Arc<Mutex<()>>,
}

#[async_trait]
impl TokenProvider for Gcloud {
    async fn token(&self, _: &[&str]) -> Result<Arc<gcp_auth::Token>, gcp_auth::Error> {
        let user = Arc::clone(&self.user);
        run_gcloud(&self.running, async move { user.token(SCOPES).await }).await
    }

    async fn project_id(&self) -> Result<Arc<str>, gcp_auth::Error> {
        self.user.project_id().await
    }
}

/// Runs the command `gcloud`, which blocks its thread for seconds. It runs once at a time: if it hangs, a later call
/// waits instead of starting another one.
async fn run_gcloud<T: Send + 'static>(
    running: &Arc<Mutex<()>>,
    work: impl Future<Output = Result<T, gcp_auth::Error>> + Send + 'static,
) -> Result<T, gcp_auth::Error> {
    let guard = Arc::clone(running).lock_owned().await;
    let runtime = tokio::runtime::Handle::current();
    let run = move || {
        let _guard = guard;
        runtime.block_on(work)
    };
    let done = tokio::task::spawn_blocking(run).await;
    done.unwrap_or_else(|error| {
        Err(gcp_auth::Error::Other("running `gcloud` failed", error.into()))
    })
}

impl GoogleTokens {
    /// Uses the credentials of the machine, which are looked for before the first call: the file that the environment
    /// variable `GOOGLE_APPLICATION_CREDENTIALS` names, the file that `gcloud auth application-default login` writes,
    /// the metadata server of Google Cloud, and the command `gcloud`. Later calls use the same credentials.
    #[must_use]
    pub fn new() -> Self {
        Self { credentials: Box::new(Machine::default()), source: Mutex::default() }
    }

    /// Uses a service account. `key` is the contents of its key file.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the key is not valid.
    pub fn of_service_account(key: &str) -> Result<Self> {
        let account = CustomServiceAccount::from_json(key).map_err(invalid_credentials)?;
        let source = Source {
            place: Some(Place::Key(ApiKey::new(key))),
            provider: Some(Arc::new(account)),
            last: None,
        };
        Ok(Self { credentials: Box::new(Machine::default()), source: Mutex::new(source) })
    }

    async fn fetch(&self) -> Result<ApiKey> {
        let provider = self.provider().await?;
        let token = provider.token(SCOPES).await.map_err(no_token)?;
        let token = ApiKey::new(token.as_str());
        let mut source = self.source.lock().await;
        // A concurrent call may have discarded the provider with its tokens.
        if source.provider.as_ref().is_some_and(|current| Arc::ptr_eq(current, &provider)) {
            source.last = Some(token.clone());
        }
        Ok(token)
    }

    async fn provider(&self) -> Result<Provider> {
        let mut source = self.source.lock().await;
        if let Some(provider) = &source.provider {
            return Ok(Arc::clone(provider));
        }
        let provider = match &source.place {
            Some(place) => self.reopen(place).await?,
            None => {
                let (place, provider) = self.find().await?;
                source.place = Some(place);
                provider
            }
        };
        source.provider = Some(Arc::clone(&provider));
        Ok(provider)
    }

    /// Returns a provider without tokens for credentials that were found before.
    async fn reopen(&self, place: &Place) -> Result<Provider> {
        let provider = self.credentials.open(place).await.map_err(no_token)?;
        provider.ok_or_else(|| {
            let message = "the credentials of Google Cloud that were used before are missing";
            Error::new(ErrorCode::ProviderUnavailable, message)
        })
    }

    /// Finds the credentials of the machine in the order of `gcp_auth::provider`, which does not tell where it found
    /// them.
    async fn find(&self) -> Result<(Place, Provider)> {
        let variable =
            self.credentials.open(&Place::Variable).await.map_err(invalid_credentials)?;
        if let Some(provider) = variable {
            return Ok((Place::Variable, provider));
        }
        let mut errors = Vec::new();
        for place in [Place::UserFile, Place::MetadataServer, Place::Gcloud] {
            match self.credentials.open(&place).await {
                Ok(Some(provider)) => return Ok((place, provider)),
                Ok(None) => {}
                // The file exists. The next place may have another identity.
                Err(error) if matches!(place, Place::UserFile) && !is_missing(&error) => {
                    return Err(match error {
                        gcp_auth::Error::Json(text, _) if !text.contains("response") => {
                            invalid_credentials(error)
                        }
                        error => no_token(error),
                    });
                }
                Err(error) => errors.push(Box::new(without_contents(error))),
            }
        }
        let message = "this machine has no credentials of Google Cloud";
        let error = Error::new(ErrorCode::ProviderUnauthorized, message);
        Err(match <[_; 3]>::try_from(errors) {
            Ok([file, server, command]) => {
                error.with_source(gcp_auth::Error::NoAuthMethod(command, server, file))
            }
            Err(_) => error,
        })
    }
}

impl Default for GoogleTokens {
    fn default() -> Self {
        Self::new()
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

    async fn discard(&self, token: &ApiKey) {
        let mut source = self.source.lock().await;
        // Another call may have replaced the token already.
        if source.last.as_ref() == Some(token) {
            (source.provider, source.last) = (None, None);
        }
    }
}

impl fmt::Debug for GoogleTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GoogleTokens").finish_non_exhaustive()
    }
}

/// Returns `true` if there is no user file that this process can open, as in a service without a home directory.
fn is_missing(error: &gcp_auth::Error) -> bool {
    use ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    match error {
        gcp_auth::Error::Io(_, error) => {
            [NotFound, NotADirectory, PermissionDenied].contains(&error.kind())
        }
        // `Str` also stands for an error status of the token server. Only the texts about a missing home directory end
        // with these words.
        gcp_auth::Error::Str(text) => text.ends_with("not found"),
        _ => false,
    }
}

fn invalid_credentials(error: gcp_auth::Error) -> Error {
    let message = "the credentials of Google Cloud are not valid";
    Error::new(ErrorCode::ConfigInvalid, message).with_source(without_contents(error))
}

fn no_token(error: gcp_auth::Error) -> Error {
    let error = without_contents(error);
    match error {
        // Usually, the token server still sent an error status after several tries.
        gcp_auth::Error::Str(text) => {
            let message = format!("Google Cloud issued no access token: {text}");
            Error::new(ErrorCode::ProviderUnauthorized, message).with_source(error)
        }
        error => {
            let message = "Google Cloud issued no access token";
            Error::new(ErrorCode::ProviderUnavailable, message).with_source(error)
        }
    }
}

/// Removes the cause of an error about JSON. It may quote the JSON, which contains a key or a token.
fn without_contents(error: gcp_auth::Error) -> gcp_auth::Error {
    match error {
        gcp_auth::Error::Json(text, cause) => {
            let (line, column) = (cause.line(), cause.column());
            let cause = format!("invalid JSON in line {line}, column {column}");
            gcp_auth::Error::Other(text, cause.into())
        }
        error => error,
    }
}
