//! Prompt caching.

use serde::{Deserialize, Serialize};

/// Whether the provider should cache the beginning of requests.
///
/// The transcript only grows, so each request begins with the previous one, and most of it can be read from the cache
/// at a lower price. Caching is a hint: providers without it ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Caching {
    /// Requests contain what the provider needs for caching: breakpoints or a key.
    #[default]
    Auto,
    /// As `Auto`, and the provider keeps the cached data for an hour, if it has such an option.
    OneHour,
    /// Requests ask for no caching. Some providers cache nevertheless.
    Off,
}

impl Caching {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::Auto
    }
}
