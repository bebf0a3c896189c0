//! API keys, which are never printed, and the headers that contain them.

use std::fmt;
use std::sync::Arc;

/// The API key of a provider. `Debug` does not show it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(Arc<str>);

impl ApiKey {
    /// Creates a key. Surrounding white space, as files and shells leave it, is removed.
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

/// Returns `true` for headers that contain keys. The name is in lower case.
pub(crate) fn is_secret_header(name: &str) -> bool {
    const ENDS: [&str; 11] = [
        "authorization",
        "-auth",
        "api-key",
        "apikey",
        "access-key",
        "auth-key",
        "subscription-key",
        "-token",
        "-secret",
        "-password",
        "cookie",
    ];
    ENDS.iter().any(|end| name.ends_with(end))
}
