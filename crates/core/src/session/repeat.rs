//! Appends whose outcome is unknown.

use std::time::Duration;

use crate::clock::{Clock, IdSource};
use crate::error::Result;
use crate::llm::RetryPolicy;

const POLICY: RetryPolicy =
    RetryPolicy { max_retries: 5, base: Duration::from_millis(20), max: Duration::from_secs(1) };

/// Repeats an append, under its id, until its outcome is known: a bounded number of times.
pub(super) async fn repeated<T, F>(
    ids: &dyn IdSource,
    clock: &dyn Clock,
    mut operation: impl FnMut() -> F,
) -> Result<T>
where
    F: Future<Output = Result<T>>,
{
    let mut retry = 0;
    loop {
        let error = match operation().await {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        let jitter = u64::try_from(ids.next() & u128::from(u32::MAX)).unwrap_or(0);
        let Some(wait) = POLICY.wait(retry, &error, jitter) else {
            return Err(error);
        };
        tracing::debug!(%error, retry, "repeating an append whose outcome is unknown");
        clock.sleep(wait).await;
        retry += 1;
    }
}
