//! Access tokens that expire.

use std::fmt::Debug;

use async_trait::async_trait;
use helix_agents_core::error::Result;

use crate::secret::ApiKey;

/// Supplies the access tokens of a provider whose tokens expire, such as Google's and Microsoft's.
///
/// ```
/// use async_trait::async_trait;
/// use helix_agents_core::error::Result;
/// use helix_agents_llm::{ApiKey, Authenticator};
///
/// #[derive(Debug)]
/// struct Metadata;
///
/// #[async_trait]
/// impl Authenticator for Metadata {
///     async fn token(&self) -> Result<ApiKey> {
///         // Ask the metadata server, unless the last token is still valid.
///         Ok(ApiKey::new("token"))
///     }
/// }
/// ```
///
/// # Cancel safety
/// The futures of both methods are dropped, at any `await`, if the model call is cancelled, after
/// [`Timeouts::first_byte`](crate::Timeouts::first_byte), and at the end of the time limit of
/// [`ModelServer::models`](crate::ModelServer::models). An implementation must remain usable: another call may use it at
/// the same time or later.
#[async_trait]
pub trait Authenticator: Debug + Send + Sync {
    /// Returns a token that is valid for at least a few minutes. It is sent as a bearer token. Each attempt at a call
    /// asks for one, so an implementation keeps the token until shortly before it expires.
    ///
    /// # Errors
    /// If this returns an error, the attempt fails. It is retried if the error is retryable. After a refused token, an
    /// error that is not retryable is logged, and the attempt fails with the provider's refusal.
    async fn token(&self) -> Result<ApiKey>;

    /// Discards a token that the provider refused, so that the next call of [`token`](Self::token) returns another one.
    /// If `token` then returns a different one, the request is repeated. This happens at most once per call and does
    /// not count as a retry. A concurrent call may already have discarded the same token. The default implementation
    /// does nothing.
    async fn discard(&self, _token: &ApiKey) {}
}
