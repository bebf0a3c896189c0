//! A task that sweeps a store at regular intervals.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::executor::AgentExecutor;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A background task that calls [`AgentExecutor::sweep`] at regular intervals: it takes over runs whose owner crashed,
/// and resumes suspended sessions that can continue because a call was answered, a deadline passed or a child ended.
///
/// Every process with a runtime can have one. If several sweep the same store, each session is still resumed only once.
/// A sweep that fails is logged as a warning, and the next one follows after the interval.
///
/// Dropping the sweeper also cancels a sweep in progress. Drop it before the executor is shut down; otherwise every
/// later sweep fails and is logged. Runs that this sweep has already continued keep running.
///
/// # Examples
/// ```no_run
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use helix_agents_core::executor::AgentExecutor;
/// use helix_agents_runtime::Sweeper;
///
/// # async fn example(runtime: Arc<dyn AgentExecutor>, stop: impl Future) {
/// let sweeper = Sweeper::start(runtime, Duration::from_secs(5));
/// stop.await;
/// sweeper.stop().await;
/// # }
/// ```
#[derive(Debug)]
pub struct Sweeper {
    cancel: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Sweeper {
    /// Starts sweeping, immediately and then after each interval.
    ///
    /// # Panics
    /// Panics if called outside of a tokio runtime.
    #[must_use]
    pub fn start(executor: Arc<dyn AgentExecutor>, interval: Duration) -> Self {
        let cancel = CancellationToken::new();
        let cancelled = cancel.clone();
        let task = tokio::spawn(async move {
            loop {
                match executor.sweep().await {
                    Ok(resumed) if resumed.is_empty() => {}
                    Ok(resumed) => tracing::info!(runs = resumed.len(), "the sweep continued runs"),
                    Err(error) => tracing::warn!(%error, "the sweep failed"),
                }
                tokio::select! {
                    () = cancelled.cancelled() => return,
                    () = tokio::time::sleep(interval) => {}
                }
            }
        });
        Self { cancel, task: Some(task) }
    }

    /// Stops sweeping, and waits for a sweep in progress. The runs that it continued keep running.
    pub async fn stop(mut self) {
        self.cancel.cancel();
        if let Some(task) = self.task.take() {
            // The task ends by itself; a panic in it was already reported.
            drop(task.await);
        }
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
