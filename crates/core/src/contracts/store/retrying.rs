//! A store wrapper that retries operations while the store is unavailable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend, WriteQueue,
};
use crate::clock::{Clock, IdSource};
use crate::error::Result;
use crate::guarantee::Guarantee;
use crate::id::{RunId, SessionId};
use crate::retry_window::RetryWindow;

/// A store wrapper that retries failed operations, so that a server restart or a dropped connection
/// only causes a delay.
///
/// Every operation of a [`StateStore`] can be retried. An append whose reply was lost is repeated
/// with the same id and returns its first result. Operations that fail with a
/// [retryable](crate::error::Error::is_retryable) error are repeated with backoff from 20 ms to one
/// second, until the retry timeout; then the last error is returned. A deletion whose reply was
/// lost is repeated only if the same session still exists, not if another session has its id by
/// then. A session that is created between this check and the repetition is deleted as well.
///
/// Runtimes wrap their store in it, and its streams in
/// [`RetryingStreams`](crate::stream::RetryingStreams). Neither the layers above nor the store
/// itself wait for a server to come back.
///
/// # Cancel safety
/// That of the wrapped store: after a future was dropped it is unknown whether the operation took
/// place.
#[derive(Debug, Clone)]
pub struct RetryingStore {
    inner: Arc<dyn StateStore>,
    retry_window: RetryWindow,
}

impl RetryingStore {
    /// Wraps a store with a retry timeout. `ids` is the source of the jitter.
    pub fn new(
        inner: Arc<dyn StateStore>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        timeout: Duration,
    ) -> Self {
        Self { inner, retry_window: RetryWindow::new(clock, ids, timeout) }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for RetryingStore {
    fn scope(&self) -> StoreScope {
        self.inner.scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.inner.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.inner.max_append_bytes()
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        self.inner.write_queue()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.retry_window.retry(|| self.inner.create_session(new.clone(), first.clone())).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.retry_window.retry(|| self.inner.fork(from, new.clone(), first.clone())).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.retry_window.retry(|| self.inner.append(append.clone())).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.retry_window.retry(|| self.inner.read_log(session, after, limit)).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.retry_window.retry(|| self.inner.head(session)).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.retry_window.retry(|| self.inner.list(filter, page)).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.retry_window.retry(|| self.inner.list_usage(filter, page)).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.retry_window.retry(|| self.inner.renew(session, run, ttl)).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.retry_window.retry(|| self.inner.save_snapshot(session, snapshot.clone())).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.retry_window.retry(|| self.inner.snapshot(session)).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.delete_if(session, &BTreeMap::new()).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let before = self.head(session).await?.map(|head| head.created_at);
        let attempts = AtomicU32::new(0);
        let delete = || async {
            if attempts.fetch_add(1, Ordering::Relaxed) > 0 {
                // An earlier attempt may have succeeded, and another session may have the id now.
                let now = self.inner.head(session).await?.map(|head| head.created_at);
                if now.is_none() || now != before {
                    return Ok(before.is_some());
                }
            }
            self.inner.delete_if(session, required_tags).await
        };
        self.retry_window.retry(delete).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.retry_window.retry(|| self.inner.purge(purge)).await
    }
}
