//! The authorizer of a server without authentication.

use async_trait::async_trait;
use http::request::Parts;

use super::{Action, Authorizer, Principal, Refusal, Scope};

/// The id of all callers of a server without authentication.
const ANONYMOUS: &str = "anonymous";

/// Permits everything to everyone. All callers are one principal, which has access to all sessions.
#[derive(Debug)]
pub(crate) struct AllowAll;

#[async_trait]
impl Authorizer for AllowAll {
    async fn authorize(&self, _: &Parts, _: Action) -> Result<Principal, Refusal> {
        let anonymous = Principal::new(ANONYMOUS).ok_or(Refusal::Unavailable)?;
        Ok(anonymous.with_scope(Scope::AllSessions).with_scope(Scope::ReadLogs))
    }
}
