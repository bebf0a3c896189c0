//! The limits of a client.

use std::time::Duration;

use helix_agents_core::llm::RetryPolicy;

/// The time limits of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// The time in which a connection is made. Default: 10 s.
    pub connect: Duration,
    /// The time of one attempt at a request, with its response. Default: 60 s.
    pub request: Duration,
    /// The time for which an event stream may be silent. The server sends a comment every 15 s. Default: 45 s.
    pub silence: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            request: Duration::from_secs(60),
            silence: Duration::from_secs(45),
        }
    }
}

/// The limits of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum size of a response. Default: 64 MiB.
    pub response_bytes: usize,
    /// The maximum size of an event of a stream. Default: 8 MiB.
    pub event_bytes: usize,
    /// The maximum number of repetitions of a request. Default: 4.
    pub retries: u32,
    /// The pause before the first repetition or reconnection. It doubles with each further one. Default: 250 ms.
    pub base_wait: Duration,
    /// The maximum pause between two attempts. If the server asks for a longer one, the request fails. Default: 30 s.
    pub max_wait: Duration,
    /// The time for which an event stream tries to reconnect. Default: 5 minutes.
    pub reconnect: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            response_bytes: 64 * 1024 * 1024,
            event_bytes: 8 * 1024 * 1024,
            retries: 4,
            base_wait: Duration::from_millis(250),
            max_wait: Duration::from_secs(30),
            reconnect: Duration::from_secs(300),
        }
    }
}

impl Limits {
    /// Returns the pauses between attempts, at most `retries` of them.
    pub(crate) const fn policy(&self, retries: u32) -> RetryPolicy {
        RetryPolicy::new(retries).base(self.base_wait).max(self.max_wait)
    }
}
