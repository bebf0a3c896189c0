//! The retries of model calls, as a `RetryPolicy` determines them.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::{LlmResponse, LlmSink, RetryPolicy};
use helix_agents_core::step::{StepResult, StopReason};
use helix_agents_core::usage::Usage;
use tokio_util::sync::CancellationToken;

use crate::failure::{FailedAttempt, Failure, Subject};

/// Makes attempts at a model call until one succeeds, the policy permits no other, or one fails after
/// its first output.
///
/// # Errors
/// Returns [`ErrorCode::Cancelled`] if the call is cancelled. Any other failure is part of the
/// response.
pub(crate) async fn with_retries<F>(
    policy: RetryPolicy,
    subject: Subject<'_>,
    cancel: &CancellationToken,
    sink: &dyn LlmSink,
    mut attempt: impl FnMut() -> F,
) -> Result<LlmResponse>
where
    F: Future<Output = Result<LlmResponse, FailedAttempt>>,
{
    let mut retries = Retries::new(policy);
    loop {
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let failed = match attempt().await {
            Ok(response) => return Ok(response),
            Err(failed) => failed,
        };
        let Failure { error, .. } = &failed.failure;
        if error.code() == ErrorCode::Cancelled {
            return Err(failed.failure.error);
        }
        if failed.delivered {
            sink.error(error);
            return Ok(failure_response(error, false));
        }
        let Some(wait) = retries.next(&failed.failure) else {
            return Ok(failure_response(error, true));
        };
        tracing::warn!(
            provider = subject.provider,
            model = subject.model,
            code = error.code().as_str(),
            retry = retries.used,
            wait_ms = wait.as_millis(),
            "model call failed; retrying"
        );
        pause(wait, cancel).await?;
    }
}

fn failure_response(error: &Error, should_stop: bool) -> LlmResponse {
    LlmResponse::new(
        StepResult::Error {
            error: error.record(),
            should_stop,
            stop_reason: Some(StopReason::Error),
        },
        Usage::default(),
    )
}

/// The retries of one model call.
#[derive(Debug)]
struct Retries {
    policy: RetryPolicy,
    used: u32,
    // The standard library seeds it randomly, which is good enough for jitter.
    random: RandomState,
}

impl Retries {
    fn new(policy: RetryPolicy) -> Self {
        Self { policy, used: 0, random: RandomState::new() }
    }

    /// Returns how long to wait before the next attempt after `failure`, or `None` if no attempt
    /// follows.
    fn next(&mut self, failure: &Failure) -> Option<Duration> {
        if !failure.may_retry {
            return None;
        }
        let jitter = self.random.hash_one(self.used);
        let wait = self.policy.wait(self.used, &failure.error, jitter)?;
        self.used += 1;
        Some(wait)
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
async fn pause(wait: Duration, cancel: &CancellationToken) -> Result<()> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(cancelled()),
        () = tokio::time::sleep(wait) => Ok(()),
    }
}
