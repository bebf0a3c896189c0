//! Authentication and authorization of requests.

mod bearer;
mod open;
mod principal;
mod token_file;
mod tokens;

use std::fmt;

use async_trait::async_trait;
use http::request::Parts;

pub(crate) use bearer::Bearer;
pub(crate) use open::AllowAll;
pub use principal::{Principal, Scope};
pub use tokens::{Role, Tokens, token_digest};

/// The action that a request performs. Each route that needs credentials has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Starts a turn, in a new session or in an existing one.
    Start,
    /// Resumes a session.
    Resume,
    /// Interrupts or aborts a run.
    Stop,
    /// Answers a pending call.
    Answer,
    /// Queues a message for a session.
    SendMessage,
    /// Starts a turn with a message, answers calls or repeats a turn, through the protocol of a front end.
    Chat,
    /// Creates a session from another one.
    Fork,
    /// Reads a session or its stream.
    Read,
    /// Reads the log of a session. The principal also needs [`Scope::ReadLogs`].
    ReadLog,
    /// Lists sessions.
    List,
    /// Deletes a session.
    Delete,
    /// Reads the agents of the server or the description of its routes.
    Describe,
    /// Queries whether the server is ready.
    CheckReadiness,
    /// Requests a path or method that the server does not have.
    UnknownRoute,
}

impl Action {
    /// Returns `true` if the action changes a session.
    #[must_use]
    pub const fn is_write(self) -> bool {
        !matches!(
            self,
            Self::Read
                | Self::ReadLog
                | Self::List
                | Self::Describe
                | Self::CheckReadiness
                | Self::UnknownRoute
        )
    }
}

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The request has no valid credentials. The response is 401.
    Unauthenticated,
    /// The credentials are valid, but do not permit the action. The response is 403.
    Forbidden,
    /// The credentials cannot be checked at the moment. The response is 503.
    Unavailable,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unauthenticated => "the request has no valid credentials",
            Self::Forbidden => "the credentials do not permit this action",
            Self::Unavailable => "the credentials cannot be checked at the moment",
        })
    }
}

/// Decides who sends a request, and whether the sender may perform the action.
///
/// The server calls it once for each request that needs credentials, before it reads the body. The authorizer does not decide about sessions:
/// the server compares the [`Principal`] with the owner of the session. It answers 404 to other principals without
/// [`Scope::AllSessions`].
///
/// # Contract
/// - A principal's id is stable, because it is recorded as the owner of sessions.
/// - Different users have different ids. Map an unknown user to [`Refusal::Unauthenticated`], never to a shared id.
/// - Credentials are read from headers. The server logs no header and no query.
/// - Browsers also send cookies with requests that pages of other sites make. The server refuses such requests, so the
///   authorizer does not have to.
///
/// # Cancel safety
/// The future is dropped if the client disconnects.
///
/// # Examples
/// ```
/// use async_trait::async_trait;
/// use helix_agents_server::{Action, Authorizer, Principal, Refusal};
/// use http::request::Parts;
///
/// /// Trusts the user name that a proxy sets.
/// #[derive(Debug)]
/// struct BehindProxy;
///
/// #[async_trait]
/// impl Authorizer for BehindProxy {
///     async fn authorize(&self, request: &Parts, _: Action) -> Result<Principal, Refusal> {
///         let user = request.headers.get("x-authenticated-user");
///         let user = user.and_then(|user| user.to_str().ok()).ok_or(Refusal::Unauthenticated)?;
///         Principal::new(user).ok_or(Refusal::Unauthenticated)
///     }
/// }
/// ```
#[async_trait]
pub trait Authorizer: fmt::Debug + Send + Sync + 'static {
    /// Returns the sender of a request if it may perform the action.
    ///
    /// # Errors
    /// Returns the reason for the refusal.
    async fn authorize(&self, request: &Parts, action: Action) -> Result<Principal, Refusal>;
}
