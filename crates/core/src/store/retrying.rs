//! A store that is asked again while it cannot answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
};
use crate::clock::{Clock, IdSource};
use crate::error::Result;
use crate::guarantee::Guarantee;
use crate::id::{RunId, SessionId};
use crate::patience::Patience;

/// A store that repeats what another one could not answer, so that a restart of a server or a
/// dropped connection costs a wait and nothing else.
///
/// Every operation of a [`StateStore`] may be repeated: an append whose answer was lost is asked for
/// again under its id and answered as the first time, never guessed at. Repeated is what failed
/// with an error that is [retryable](crate::error::Error::is_retryable), after waits that double
/// from 20 ms to a second, until the patience is over; the last error is the answer then. A deletion
/// whose answer was lost is answered by the second one, which finds nothing.
///
/// Runtimes put this around the store that they are given, and a
/// [`RetryingStreams`](crate::stream::RetryingStreams) around its streams; neither what is above them nor
/// the store itself waits for a server to come back.
///
/// # Cancel safety
/// As the store's own: dropping a future leaves open whether the operation took place.
#[derive(Debug, Clone)]
pub struct RetryingStore {
    inner: Arc<dyn StateStore>,
    patience: Patience,
}

impl RetryingStore {
    /// The store, asked for so long. The ids are what jitter is made of.
    pub fn new(
        inner: Arc<dyn StateStore>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
        patience: Duration,
    ) -> Self {
        Self { inner, patience: Patience::new(clock, ids, patience) }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for RetryingStore {
    fn reach(&self) -> StoreScope {
        self.inner.reach()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.inner.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.inner.max_append_bytes()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.patience.ask(|| self.inner.create_session(new.clone(), first.clone())).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.patience.ask(|| self.inner.fork(from, new.clone(), first.clone())).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.patience.ask(|| self.inner.append(append.clone())).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.patience.ask(|| self.inner.read_log(session, after, limit)).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.patience.ask(|| self.inner.head(session)).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.patience.ask(|| self.inner.list(filter, page)).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.patience.ask(|| self.inner.list_usage(filter, page)).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.patience.ask(|| self.inner.renew(session, run, ttl)).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.patience.ask(|| self.inner.save_snapshot(session, snapshot.clone())).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.patience.ask(|| self.inner.snapshot(session)).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.patience.ask(|| self.inner.delete(session)).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.patience.ask(|| self.inner.purge(purge)).await
    }
}
