//! Waiting between the attempts of one model call.

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
    // Randomly keyed by the standard library; jitter needs no better source.
    random: RandomState,
}

impl Retries {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        Self { policy, used: 0, random: RandomState::new() }
    }

    /// How long to wait before trying again after `failure`, or `None` to give up.
    pub(crate) fn next(&mut self, failure: &Failure) -> Option<Duration> {
        if !failure.again {
            return None;
        }
        let jitter = self.random.hash_one(self.used);
        let wait = self.policy.wait(self.used, &failure.error, jitter)?;
        self.used += 1;
        Some(wait)
    }

    /// How many retries were made so far.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }
}

/// The error of a call that was cancelled.
pub(crate) fn cancelled() -> Error {
    Error::new(ErrorCode::Cancelled, "the model call was cancelled")
        .with_operation("llm::generate_step")
}

/// Waits, unless the call is cancelled.
///
/// # Errors
/// [`ErrorCode::Cancelled`].
pub(crate) async fn pause(wait: Duration, cancel: &CancellationToken) -> Result<()> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(cancelled()),
        () = tokio::time::sleep(wait) => Ok(()),
    }
}
