//! Keys that print as dots.

use std::fmt;
use std::sync::Arc;

/// The key of a provider. `Debug` does not show it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// Takes a key. White space around it, as files and shells leave it, is dropped.
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self(key.trim().into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ApiKey {
    fn from(key: &str) -> Self {
        Self::new(key)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}
