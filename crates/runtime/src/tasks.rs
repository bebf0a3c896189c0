//! Detached background tasks, tracked so that a shutdown can wait for them.

use std::panic::resume_unwind;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helix_agents_core::error::{Error, ErrorCode, Result};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

/// A tracker for the background tasks of a runtime.
#[derive(Debug)]
pub struct Tasks {
    tracker: TaskTracker,
    /// The tokio runtime of the tasks. `None`: the runtime of the caller.
    on: Option<Handle>,
    /// Cancelled when no new tasks may start and running tasks should stop before their next effect.
    pub drain: CancellationToken,
    /// Cancelled when running tasks should also cancel their current effect.
    pub shutdown: CancellationToken,
}

impl Tasks {
    pub(crate) fn new(on: Option<Handle>) -> Self {
        let (drain, shutdown) = (CancellationToken::new(), CancellationToken::new());
        Self { tracker: TaskTracker::new(), on, drain, shutdown }
    }

    /// Spawns a task that a shutdown waits for.
    ///
    /// # Panics
    /// Panics outside a tokio runtime, unless a runtime was configured for the tasks.
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match &self.on {
            Some(handle) => self.tracker.spawn_on(task, handle),
            None => self.tracker.spawn(task),
        }
    }

    /// Runs work in a detached task, so that it completes even if the caller's future is dropped.
    ///
    /// # Errors
    /// Returns the errors of the work, and [`ErrorCode::Closed`] if the tokio runtime was shut down before the
    /// work completed.
    ///
    /// # Panics
    /// Propagates panics of the work, and panics as [`spawn`](Self::spawn) does.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the work.
    pub(crate) fn detach<T: Send + 'static>(
        &self,
        work: BoxFuture<'static, Result<T>>,
    ) -> impl Future<Output = Result<T>> + use<T> {
        let task = self.spawn(work.in_current_span());
        async {
            match task.await {
                Ok(done) => done,
                Err(end) if end.is_panic() => resume_unwind(end.into_panic()),
                Err(_) => Err(Error::new(
                    ErrorCode::Closed,
                    "the tokio runtime was shut down before the operation completed",
                )),
            }
        }
    }

    /// Stops all tasks and waits until they have ended, without a time limit. Tasks stop before their next effect;
    /// an effect that is still running after the grace period is cancelled.
    pub async fn end(&self, grace: Duration) {
        self.drain.cancel();
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            self.shutdown.cancel();
            self.tracker.wait().await;
        }
    }
}
