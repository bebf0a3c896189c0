//! The bearer token, which is never printed.

use std::fmt;
use std::sync::Arc;

use reqwest::header::HeaderValue;

/// A bearer token. `Debug` does not show it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

impl Token {
    /// Creates a token. Surrounding white space, as files and shells leave it, is removed.
    #[must_use]
    pub fn new(token: &str) -> Self {
        Self(token.trim().into())
    }

    /// Returns the value of the header `Authorization`, or `None` if the token cannot be part of one.
    pub(crate) fn header(&self) -> Option<HeaderValue> {
        if self.0.is_empty() {
            return None;
        }
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl From<&str> for Token {
    fn from(token: &str) -> Self {
        Self::new(token)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}
