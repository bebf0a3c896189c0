//! Options of the Redis store.

use std::fmt;
use std::time::Duration;

/// The options with which a store is opened.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) url: String,
    pub(crate) prefix: Option<String>,
    pub(crate) operation_timeout: Duration,
    pub(crate) streams: Streams,
}

/// The options of streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Streams {
    pub(crate) retention: u64,
    pub(crate) ttl: Duration,
    pub(crate) poll_interval: Duration,
}

/// Omits the URL, which may contain a password.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("prefix", &self.prefix)
            .field("operation_timeout", &self.operation_timeout)
            .field("streams", &self.streams)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Returns the default options for the server at a URL.
    pub(crate) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            prefix: None,
            operation_timeout: Duration::from_secs(10),
            streams: Streams {
                retention: 100_000,
                ttl: Duration::from_secs(7 * 24 * 60 * 60),
                poll_interval: Duration::from_secs(1),
            },
        }
    }
}
