//! The retries of model calls, as a `RetryPolicy` determines them.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::{self, LlmResponse, LlmSink, RetryPolicy};
use helix_agents_core::step::{StepResult, StopReason};
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
    let mut earlier = Vec::new();
    loop {
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        let failed = match attempt().await {
            Ok(mut response) => {
                response.failed_attempts = earlier;
                return Ok(response);
            }
            Err(failed) => failed,
        };
        let Failure { error, .. } = &failed.failure;
        if error.code() == ErrorCode::Cancelled {
            return Err(failed.failure.error);
        }
        if failed.delivered {
            sink.error(error);
            // The caller cannot take the output back, but it can repeat the step.
            let should_stop = !failed.failure.is_transient();
            return Ok(failure_response(&failed, should_stop, earlier));
        }
        let Some(wait) = retries.next(&failed.failure) else {
            return Ok(failure_response(&failed, true, earlier));
        };
        tracing::warn!(
            provider = subject.provider,
            model = subject.model,
            code = error.code().as_str(),
            retry = retries.used,
            wait_ms = wait.as_millis(),
            "model call failed; retrying"
        );
        earlier.push(llm::FailedAttempt::new(error, failed.usage));
        pause(wait, cancel).await?;
    }
}

/// Returns the response of a call that is rejected before a request is sent.
#[cold]
pub(crate) fn rejected_before_request(error: Error) -> LlmResponse {
    failure_response(&FailedAttempt::early(error), true, Vec::new())
}

/// Returns the response of a call whose last attempt failed.
#[cold]
fn failure_response(
    failed: &FailedAttempt,
    should_stop: bool,
    earlier: Vec<llm::FailedAttempt>,
) -> LlmResponse {
    let result = StepResult::Error {
        error: failed.failure.error.record(),
        should_stop,
        stop_reason: Some(StopReason::Error),
    };
    let mut response = LlmResponse::new(result, failed.usage);
    response.failed_attempts = earlier;
    response
}

/// The retries of one call.
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
        if !failure.is_transient() {
            return None;
        }
        let jitter = self.random.hash_one(self.used);
        let wait = self.policy.wait(self.used, &failure.error, jitter)?;
        self.used += 1;
        Some(wait)
    }
}

/// Returns the error of a cancelled call.
#[cold]
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
