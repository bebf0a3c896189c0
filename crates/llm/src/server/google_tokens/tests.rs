//! The choice of credentials, without a machine that has some.

use std::collections::VecDeque;
use std::io;
use std::pin::pin;
use std::sync::Mutex as StdMutex;

use futures_util::FutureExt as _;
use gcp_auth::{Error as GcpError, Token};
use serde_json::json;
use tokio::sync::{Semaphore, oneshot};

use super::*;

type Opened = Result<Option<Provider>, GcpError>;

struct Fake<F>(StdMutex<F>);

#[async_trait]
impl<F: FnMut(&Place) -> Opened + Send> Credentials for Fake<F> {
    async fn open(&self, place: &Place) -> Opened {
        (*self.0.lock().unwrap())(place)
    }
}

/// Issues one token, once per permit.
struct Issuer(&'static str, Arc<Semaphore>);

#[async_trait]
impl TokenProvider for Issuer {
    async fn token(&self, _: &[&str]) -> Result<Arc<Token>, GcpError> {
        self.1.acquire().await.unwrap().forget();
        let token = json!({"access_token": self.0, "expires_in": 3600});
        Ok(Arc::new(serde_json::from_value(token).unwrap()))
    }

    async fn project_id(&self) -> Result<Arc<str>, GcpError> {
        Ok("p".into())
    }
}

fn issuer(token: &'static str) -> Provider {
    Arc::new(Issuer(token, Arc::new(Semaphore::new(10))))
}

fn unreachable() -> GcpError {
    GcpError::Other("HTTP request failed", "no route".into())
}

fn missing() -> GcpError {
    GcpError::Io("failed to open application credentials file", io::ErrorKind::NotFound.into())
}

fn refused() -> GcpError {
    GcpError::Str("token request failed")
}

/// Returns an error that quotes a file.
fn not_json() -> GcpError {
    let error = serde_json::from_str::<Vec<u8>>(r#""{\"private_key\":\"MARKER\"}""#).unwrap_err();
    assert!(error.to_string().contains("MARKER"));
    GcpError::Json("failed to deserialize user credentials", error)
}

/// Returns the error about a token server that sends a web page.
fn no_json_response() -> GcpError {
    let error = serde_json::from_str::<u8>("<html>").unwrap_err();
    GcpError::Json("failed to deserialize token from response", error)
}

fn tokens(open: impl FnMut(&Place) -> Opened + Send + 'static) -> GoogleTokens {
    GoogleTokens { credentials: Box::new(Fake(StdMutex::new(open))), source: Mutex::default() }
}

/// Returns tokens of a machine whose user file has these outcomes. Its metadata server has another identity.
fn of_user_file(outcomes: impl IntoIterator<Item = Result<Provider, GcpError>>) -> GoogleTokens {
    let mut outcomes = outcomes.into_iter().collect::<VecDeque<_>>();
    tokens(move |place| match place {
        Place::Variable => Ok(None),
        Place::UserFile => outcomes.pop_front().unwrap().map(Some),
        _ => Ok(Some(issuer("other"))),
    })
}

#[tokio::test]
async fn a_discarded_token_is_replaced_by_one_of_the_same_credentials() {
    let outcomes = [
        Ok(issuer("token-1")),
        Err(unreachable()),
        Err(missing()),
        Err(refused()),
        Ok(issuer("token-2")),
    ];
    let tokens = of_user_file(outcomes);
    let first = tokens.token().await.unwrap();
    assert_eq!(first.expose(), "token-1");
    tokens.discard(&first).await;
    for (code, is_retryable) in [
        (ErrorCode::ProviderUnavailable, true),
        (ErrorCode::ProviderUnavailable, true),
        (ErrorCode::ProviderUnauthorized, false),
    ] {
        let error = tokens.token().await.unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), (code, is_retryable));
    }
    assert_eq!(tokens.token().await.unwrap().expose(), "token-2");
}

#[tokio::test]
async fn credentials_from_the_environment_that_disappear_are_not_replaced() {
    let mut variable = VecDeque::from([Some(issuer("token-1")), None]);
    let tokens = tokens(move |place| match place {
        Place::Variable => Ok(variable.pop_front().unwrap()),
        _ => Ok(Some(issuer("other"))),
    });
    let first = tokens.token().await.unwrap();
    tokens.discard(&first).await;
    assert_eq!(tokens.token().await.unwrap_err().code(), ErrorCode::ProviderUnavailable);
}

#[tokio::test]
async fn places_are_tried_in_order() {
    let unreadable = |kind: io::ErrorKind| GcpError::Io("failed to open the file", kind.into());
    for error in [
        missing(),
        unreadable(io::ErrorKind::NotADirectory),
        unreadable(io::ErrorKind::PermissionDenied),
        GcpError::Str("home directory not found"),
    ] {
        assert_eq!(of_user_file([Err(error)]).token().await.unwrap().expose(), "other");
    }
    // The file has the identity that was chosen, so no other is used.
    for (error, code) in [
        (unreachable(), ErrorCode::ProviderUnavailable),
        (refused(), ErrorCode::ProviderUnauthorized),
        (not_json(), ErrorCode::ConfigInvalid),
        (no_json_response(), ErrorCode::ProviderUnavailable),
    ] {
        let tokens_of_file = of_user_file([Err(error), Ok(issuer("token-1"))]);
        assert_eq!(tokens_of_file.token().await.unwrap_err().code(), code);
        assert_eq!(tokens_of_file.token().await.unwrap().expose(), "token-1");
    }

    let error = tokens(|_| Err(missing())).token().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid, "the file of the variable");
    let opened = Arc::new(StdMutex::new(Vec::new()));
    let log = Arc::clone(&opened);
    let none = tokens(move |place| {
        log.lock().unwrap().push(format!("{place:?}"));
        if matches!(place, Place::Variable) { Ok(None) } else { Err(missing()) }
    });
    let error = none.token().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ProviderUnauthorized);
    assert_eq!(*opened.lock().unwrap(), ["Variable", "UserFile", "MetadataServer", "Gcloud"]);
}

#[tokio::test]
async fn a_late_token_of_a_discarded_provider_does_not_hide_the_current_one() {
    let permits = Arc::new(Semaphore::new(1));
    let first: Provider = Arc::new(Issuer("token-1", Arc::clone(&permits)));
    let tokens = of_user_file([Ok(first), Ok(issuer("token-2")), Ok(issuer("token-3"))]);
    let token_1 = tokens.token().await.unwrap();
    let mut late = pin!(tokens.token());
    assert!(late.as_mut().now_or_never().is_none(), "waits for its token");
    tokens.discard(&token_1).await;
    let token_2 = tokens.token().await.unwrap();
    assert_eq!(token_2.expose(), "token-2");
    permits.add_permits(1);
    assert_eq!(late.await.unwrap(), token_1);
    tokens.discard(&token_2).await;
    assert_eq!(tokens.token().await.unwrap().expose(), "token-3");
}

#[tokio::test]
async fn no_error_shows_the_contents_of_a_file() {
    let mut errors = vec![
        of_user_file([Err(not_json())]).token().await.unwrap_err(),
        tokens(|_| Err(not_json())).token().await.unwrap_err(),
        GoogleTokens::of_service_account(r#""{\"private_key\":\"MARKER\"}""#).unwrap_err(),
    ];
    let other = tokens(|place| match place {
        Place::Variable => Ok(None),
        Place::UserFile => Err(missing()),
        _ => Err(not_json()),
    });
    errors.push(other.token().await.unwrap_err());
    for error in errors {
        let text = format!("{error:?} {error}");
        assert!(!text.contains("MARKER") && text.contains("Google Cloud"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gcloud_runs_once_at_a_time_even_if_a_caller_gives_up() {
    let running = Arc::default();
    let (starts, started) = oneshot::channel();
    let (release, released) = oneshot::channel::<()>();
    let first = tokio::spawn({
        let running = Arc::clone(&running);
        async move {
            let work = async move {
                starts.send(()).unwrap();
                released.await.unwrap();
                Ok(())
            };
            run_gcloud(&running, work).await
        }
    });
    started.await.unwrap();
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());

    assert!(running.try_lock().is_err(), "the first command still runs");
    let mut second = pin!(run_gcloud(&running, async { Ok("token") }));
    assert!((&mut second).now_or_never().is_none());
    release.send(()).unwrap();
    assert_eq!(second.await.unwrap(), "token");
}
