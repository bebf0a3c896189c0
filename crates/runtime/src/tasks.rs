//! Work that goes on, whoever waits for it.

use std::panic::resume_unwind;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helix_agents_core::error::{Error, ErrorCode, Result};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

/// The tasks of a runtime.
#[derive(Debug)]
pub struct Tasks {
    tracker: TaskTracker,
    /// Where they run; none where they are begun.
    on: Option<Handle>,
    /// Cancelled when no more are to be begun, and those under way should stop where they stand.
    pub drain: CancellationToken,
    /// Cancelled when they should break off what they do, too.
    pub shutdown: CancellationToken,
}

impl Tasks {
    pub(crate) fn new(on: Option<Handle>) -> Self {
        let (drain, shutdown) = (CancellationToken::new(), CancellationToken::new());
        Self { tracker: TaskTracker::new(), on, drain, shutdown }
    }

    /// Begins a task. A shutdown waits for it.
    ///
    /// # Panics
    /// Outside a tokio runtime, unless these tasks have one of their own.
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match &self.on {
            Some(handle) => self.tracker.spawn_on(task, handle),
            None => self.tracker.spawn(task),
        }
    }

    /// Has work done that has to come to its end once it was begun.
    ///
    /// # Errors
    /// Those of the work; [`ErrorCode::Closed`] if the tokio runtime was shut down in the middle.
    ///
    /// # Panics
    /// As the work does, and as [`spawn`](Self::spawn).
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
                    "its tokio runtime was shut down in the middle",
                )),
            }
        }
    }

    /// Ends the tasks: they stop before their next effect, and after the grace period in the middle of
    /// it.
    pub async fn end(&self, grace: Duration) {
        self.drain.cancel();
        self.tracker.close();
        if tokio::time::timeout(grace, self.tracker.wait()).await.is_err() {
            self.shutdown.cancel();
            self.tracker.wait().await;
        }
    }
}
