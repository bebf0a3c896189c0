//! Authentication by bearer tokens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::error::Error;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use tokio::time::Instant;

use super::token_file::TokenFile;
use super::{Action, Authorizer, Principal, Refusal, Tokens};

/// The minimum time between two checks whether the file of tokens has changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Authenticates a request by the token in its `Authorization` header.
#[derive(Debug)]
pub(crate) struct Bearer {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    tokens: Arc<Tokens>,
    /// The file as it was when it was read last, successfully or not.
    file: Option<TokenFile>,
    checked_at: Option<Instant>,
}

impl Bearer {
    pub(crate) fn new(tokens: Tokens) -> Self {
        let file = tokens.file.clone();
        let state = State { tokens: Arc::new(tokens), file, checked_at: None };
        Self { state: Mutex::new(state) }
    }

    /// Returns the tokens, after reading their file again if it has changed. Concurrent requests do not wait for that.
    async fn tokens(&self) -> Arc<Tokens> {
        let Some(file) = self.file_to_check() else { return Arc::clone(&self.lock().tokens) };
        let read = move || file.changed().map(|file| (Tokens::read(file.path()), file));
        // Otherwise the file has not changed, or the process is exiting.
        if let Ok(Some((read, file))) = tokio::task::spawn_blocking(read).await {
            self.replace(read, file);
        }
        Arc::clone(&self.lock().tokens)
    }

    /// Returns the file if a check is due, and notes that it is made.
    fn file_to_check(&self) -> Option<TokenFile> {
        let mut state = self.lock();
        let file = state.file.clone()?;
        let now = Instant::now();
        let is_due = |checked_at: Instant| now.duration_since(checked_at) >= CHECK_INTERVAL;
        if !state.checked_at.is_none_or(is_due) {
            return None;
        }
        state.checked_at = Some(now);
        Some(file)
    }

    /// Takes over what was read from the changed file. If it is invalid, the previous tokens stay.
    fn replace(&self, read: Result<Tokens, Error>, file: TokenFile) {
        let mut state = self.lock();
        match read {
            Ok(tokens) => {
                tracing::info!(tokens = tokens.len(), "read the changed file of tokens");
                state.file.clone_from(&tokens.file);
                state.tokens = Arc::new(tokens);
            }
            Err(error) => {
                tracing::error!(%error, "the changed file of tokens is invalid; the previous tokens stay valid");
                state.file = Some(file);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Authorizer for Bearer {
    async fn authorize(&self, request: &Parts, action: Action) -> Result<Principal, Refusal> {
        let token = bearer_token(&request.headers).ok_or(Refusal::Unauthenticated)?;
        let tokens = self.tokens().await;
        let (name, role) = tokens.find(token).ok_or(Refusal::Unauthenticated)?;
        if action.is_write() && !role.may_write() {
            return Err(Refusal::Forbidden);
        }
        let principal = Principal::new(name).ok_or(Refusal::Unauthenticated)?;
        Ok(role.scopes().iter().fold(principal, |principal, scope| principal.with_scope(*scope)))
    }
}

/// Returns the token of the only `Authorization` header. A second header is ambiguous, and refused.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
