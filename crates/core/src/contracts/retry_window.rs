//! Retries while a store is unavailable. This is the only place that waits for it.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, IdSource};
use crate::error::{Error, Result};
use crate::llm::RetryPolicy;

/// The number of retries is limited by time, not by count.
const POLICY: RetryPolicy =
    RetryPolicy::new(u32::MAX).base(Duration::from_millis(20)).max(Duration::from_secs(1));

/// The retry timeout and the clock that measures it.
#[derive(Debug, Clone)]
pub(crate) struct RetryWindow {
    clock: Arc<dyn Clock>,
    /// The source of the jitter.
    ids: Arc<dyn IdSource>,
    timeout: Duration,
}

impl RetryWindow {
    pub(crate) fn new(clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>, timeout: Duration) -> Self {
        Self { clock, ids, timeout }
    }

    /// Runs a repeatable operation, and retries it while it fails with a
    /// [retryable](Error::is_retryable) error, until the retry timeout has passed.
    pub(crate) async fn retry<T, F>(&self, mut operation: impl FnMut() -> F + Send) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        let error = match operation().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        self.retry_after_error(error, operation).await
    }

    /// Continues after the first failure. This is a separate function, to keep its state out of the
    /// common case.
    pub(crate) async fn retry_after_error<T, F>(
        &self,
        mut error: Error,
        mut operation: impl FnMut() -> F + Send,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        let started = self.clock.monotonic();
        let mut retry = 0;
        loop {
            let jitter = u64::try_from(self.ids.next() & u128::from(u32::MAX)).unwrap_or(0);
            let Some(wait) = POLICY.wait(retry, &error, jitter) else { return Err(error) };
            let waited = self.clock.monotonic().saturating_sub(started);
            if waited + wait > self.timeout {
                return Err(match retry {
                    0 => error,
                    tries => error.with_context("tries", tries + 1),
                });
            }
            tracing::debug!(%error, retry, "retrying the store operation");
            self.clock.sleep(wait).await;
            retry += 1;
            error = match operation().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
        }
    }
}
