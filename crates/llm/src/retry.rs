//! The waits between the attempts of one model call, as a `RetryPolicy` determines them. The adapter's
//! `generate_step` makes the attempts.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::RetryPolicy;
use tokio_util::sync::CancellationToken;

use crate::failure::Failure;

/// The retries of one model call.
#[derive(Debug)]
pub(crate) struct Retries {
    policy: RetryPolicy,
    used: u32,
    // The standard library seeds it randomly, which is good enough for jitter.
    random: RandomState,
}

impl Retries {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        Self { policy, used: 0, random: RandomState::new() }
    }

    /// Returns how long to wait before the next attempt after `failure`, or `None` if no attempt
    /// follows.
    pub(crate) fn next(&mut self, failure: &Failure) -> Option<Duration> {
        if !failure.may_retry {
            return None;
        }
        let jitter = self.random.hash_one(self.used);
        let wait = self.policy.wait(self.used, &failure.error, jitter)?;
        self.used += 1;
        Some(wait)
    }

    /// Returns the number of retries so far.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }
}

/// Returns the error of a cancelled call.
pub(crate) fn cancelled() -> Error {
    Error::new(ErrorCode::Cancelled, "the model call was cancelled")
        .with_operation("llm::generate_step")
}

/// Waits, unless the call is cancelled.
///
/// # Errors
/// Returns [`ErrorCode::Cancelled`] if the call is cancelled.
pub(crate) async fn pause(wait: Duration, cancel: &CancellationToken) -> Result<()> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(cancelled()),
        () = tokio::time::sleep(wait) => Ok(()),
    }
}
