//! How often, and after which waits, a failed call of a model or a tool is retried.

use std::time::Duration;

use super::DEFAULT_MAX_RETRIES;
use crate::error::Error;

/// The retry policy of a failed effect.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The maximum number of retries.
    pub max_retries: u32,
    /// The wait before the first retry. It doubles with each further retry.
    pub base: Duration,
    /// The maximum wait. If a provider asks for more, there is no retry.
    pub max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_RETRIES)
    }
}

impl RetryPolicy {
    /// Creates a policy with this many retries, whose waits start at 0.5 s and end at 60 s.
    #[must_use]
    pub const fn new(max_retries: u32) -> Self {
        Self { max_retries, base: Duration::from_millis(500), max: Duration::from_secs(60) }
    }

    /// Sets the wait before the first retry.
    #[must_use]
    pub const fn base(mut self, wait: Duration) -> Self {
        self.base = wait;
        self
    }

    /// Sets the maximum wait.
    #[must_use]
    pub const fn max(mut self, wait: Duration) -> Self {
        self.max = wait;
        self
    }

    /// Returns the wait before retry number `retry` (from 0), or `None` if there is none. `jitter`
    /// is a random number that reduces the wait by up to half. A wait that the provider asked for
    /// is not reduced, and one that is shorter than the policy's is ignored, so that a provider
    /// cannot cause retries without a pause.
    #[must_use]
    pub fn wait(&self, retry: u32, error: &Error, jitter: u64) -> Option<Duration> {
        if !error.is_retryable() {
            return None;
        }
        let own = self.backoff(retry, jitter)?;
        match error.retry_after() {
            Some(asked) if asked > self.max => None,
            Some(asked) => Some(asked.max(own)),
            None => Some(own),
        }
    }

    /// Returns the wait before retry number `retry` (from 0) of an error that is known to be
    /// transient, or `None` if there is none.
    #[must_use]
    pub fn backoff(&self, retry: u32, jitter: u64) -> Option<Duration> {
        if retry >= self.max_retries {
            return None;
        }
        let full = self.base.saturating_mul(1 << retry.min(16)).min(self.max);
        let half = u64::try_from(full.as_millis() / 2).unwrap_or(u64::MAX);
        Some(full.saturating_sub(Duration::from_millis(jitter % half.saturating_add(1))))
    }
}
