//! A store whose operations are measured.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend, WriteQueue,
};

use crate::metrics::Metrics;

/// A store whose operations are measured, from [`Telemetry::measured_store`](crate::Telemetry::measured_store).
///
/// Every attempt is recorded, including failed ones that a runtime retries. A failed attempt has the error code as `error.type`.
/// In all other respects, the store behaves as the wrapped one.
#[derive(Clone)]
pub struct MeasuredStore {
    inner: Arc<dyn StateStore>,
    metrics: Option<Arc<Metrics>>,
}

impl MeasuredStore {
    pub(crate) fn new(inner: Arc<dyn StateStore>, metrics: Option<Arc<Metrics>>) -> Self {
        Self { inner, metrics }
    }

    /// Executes an operation and records its duration. `outcome` names the result.
    async fn measure<T>(
        &self,
        operation: &'static str,
        execution: impl Future<Output = Result<T>>,
        outcome: impl FnOnce(&T) -> &'static str,
    ) -> Result<T> {
        let Some(metrics) = &self.metrics else { return execution.await };
        let started = Instant::now();
        let result = execution.await;
        let outcome = result.as_ref().map(outcome).map_err(|error| error.code().as_str());
        metrics.record_store_operation(operation, started.elapsed(), outcome);
        result
    }
}

/// The outcome of an operation that takes place whenever it does not fail.
fn done<T>(_: &T) -> &'static str {
    "done"
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for MeasuredStore {
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
        self.measure("create_session", self.inner.create_session(new, first), done).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.measure("fork", self.inner.fork(from, new, first), done).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.measure("append", self.inner.append(append), |outcome| match outcome {
            AppendOutcome::Appended { .. } => "done",
            AppendOutcome::Conflict { .. } => "conflict",
            _ => "refused",
        })
        .await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.measure("read_log", self.inner.read_log(session, after, limit), done).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.measure("head", self.inner.head(session), done).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.measure("list", self.inner.list(filter, page), done).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.measure("list_usage", self.inner.list_usage(filter, page), done).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.measure("renew", self.inner.renew(session, run, ttl), done).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        self.measure("save_snapshot", self.inner.save_snapshot(session, snapshot), done).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.measure("snapshot", self.inner.snapshot(session), done).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.measure("delete", self.inner.delete(session), done).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        self.measure("delete", self.inner.delete_if(session, required_tags), done).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.measure("purge", self.inner.purge(purge), done).await
    }
}

impl fmt::Debug for MeasuredStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MeasuredStore").field(&self.inner).finish()
    }
}
