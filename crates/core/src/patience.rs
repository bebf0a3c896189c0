//! Asking again while a store is away: the one place that waits.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, IdSource};
use crate::error::{Error, Result};
use crate::llm::RetryPolicy;

/// The time is what limits the number of tries.
const POLICY: RetryPolicy = RetryPolicy {
    max_retries: u32::MAX,
    base: Duration::from_millis(20),
    max: Duration::from_secs(1),
};

/// How long something that cannot answer is asked again, and by which clock.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    clock: Arc<dyn Clock>,
    /// What jitter is made of.
    ids: Arc<dyn IdSource>,
    lasts: Duration,
}

impl Patience {
    pub(crate) fn new(clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>, lasts: Duration) -> Self {
        Self { clock, ids, lasts }
    }

    /// Does something that may be repeated, until it does not fail with an error that is
    /// [retryable](Error::is_retryable) or the patience is over.
    pub(crate) async fn ask<T, F>(&self, mut operation: impl FnMut() -> F + Send) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        let error = match operation().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        self.insist(error, operation).await
    }

    /// The same after it failed the first time. Apart from `ask`, so that what is nearly always done
    /// carries nothing of it along.
    pub(crate) async fn insist<T, F>(
        &self,
        mut error: Error,
        mut operation: impl FnMut() -> F + Send,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        let since = self.clock.monotonic();
        let mut retry = 0;
        loop {
            let jitter = u64::try_from(self.ids.next() & u128::from(u32::MAX)).unwrap_or(0);
            let Some(wait) = POLICY.wait(retry, &error, jitter) else { return Err(error) };
            let waited = self.clock.monotonic().saturating_sub(since);
            if waited + wait > self.lasts {
                return Err(match retry {
                    0 => error,
                    tries => error.with_context("tries", tries + 1),
                });
            }
            tracing::debug!(%error, retry, "asking the store again");
            self.clock.sleep(wait).await;
            retry += 1;
            error = match operation().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
        }
    }
}
