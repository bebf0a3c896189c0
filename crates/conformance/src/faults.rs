//! A store with chosen faults: holds an append, loses its reply, or fails it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend, WriteQueue,
};
use helix_agents_test::Gate;

/// The fault of a chosen operation: an append, or one of [`SNAPSHOT`], [`LIST`], [`HEAD`], [`DELETE`] and [`PAGE`]. A
/// [`Gate`] holds an operation until the test opens it.
#[derive(Debug, Clone)]
pub enum Fault {
    /// The operation waits at the gate before it reaches the store.
    HoldBefore(Gate),
    /// The operation takes effect, and its reply waits at the gate.
    HoldAfter(Gate),
    /// The operation never reaches the store. The error does not tell whether it took effect.
    FailBefore,
    /// The operation takes effect. The error does not tell whether it did.
    LoseReply,
    /// The operation does not take effect and fails with this error code.
    Refuse(ErrorCode),
}

#[derive(Debug)]
struct Rule {
    /// Text that the append's events contain.
    containing: String,
    fault: Fault,
}

/// The text of a rule for the next snapshot that is saved.
pub const SNAPSHOT: &str = "snapshot";

/// The text of a rule for the next list of sessions.
pub const LIST: &str = "list of sessions";

/// The text of a rule for the next head of a session that is read.
pub const HEAD: &str = "head of a session";

/// The text of a rule for the next session that is deleted.
pub const DELETE: &str = "deletion of a session";

/// The text of a rule for the next page of a log that is read.
pub const PAGE: &str = "page of a log";

/// A store with faults. Every rule applies once, in the order in which the rules were added.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use helix_agents_conformance::faults::{Fault, FaultStore, HEAD};
/// use helix_agents_core::store::StateStore as _;
/// use helix_agents_store_memory::MemoryStore;
///
/// # #[tokio::main]
/// # async fn main() -> helix_agents_core::error::Result<()> {
/// let store = FaultStore::new(Arc::new(MemoryStore::new())).with_fault(HEAD, Fault::FailBefore);
/// let session = "ticket-7".into();
/// assert!(store.head(&session).await.is_err());
/// assert!(store.head(&session).await?.is_none()); // the rule has applied
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FaultStore {
    inner: Arc<dyn StateStore>,
    rules: Arc<Mutex<Vec<Rule>>>,
    renewals: Option<Gate>,
    /// Number of appends that were read from logs.
    read: Arc<AtomicUsize>,
    max_append_bytes: usize,
}

impl FaultStore {
    /// Wraps a store, without faults at first.
    pub fn new(inner: Arc<dyn StateStore>) -> Self {
        let max_append_bytes = inner.max_append_bytes();
        Self {
            inner,
            rules: Arc::default(),
            renewals: None,
            read: Arc::default(),
            max_append_bytes,
        }
    }

    /// Adds a fault for the next append whose events contain `text`, such as `"run_ended"`.
    #[must_use]
    pub fn with_fault(self, text: &str, fault: Fault) -> Self {
        self.inject(text, fault);
        self
    }

    /// Adds a fault like [`with_fault`](Self::with_fault), to a store that is already in use.
    pub fn inject(&self, text: &str, fault: Fault) {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        rules.push(Rule { containing: text.to_owned(), fault });
    }

    /// Returns the number of appends that were read from logs so far.
    #[must_use]
    pub fn appends_read(&self) -> usize {
        self.read.load(Ordering::Relaxed)
    }

    /// Holds every lease renewal at the gate, so the owner is alive but cannot renew its lease.
    #[must_use]
    pub fn hold_renewals(mut self, gate: &Gate) -> Self {
        self.renewals = Some(gate.clone());
        self
    }

    /// Accepts appends of up to `most` bytes and refuses larger ones, as a store with that limit does.
    #[must_use]
    pub fn refuse_appends_over(mut self, most: usize) -> Self {
        self.max_append_bytes = most;
        self
    }

    fn check(&self, append: &Append) -> Result<()> {
        if append.body.len() <= self.max_append_bytes {
            return Ok(());
        }
        Err(Error::new(ErrorCode::TooLarge, "the append exceeds the limit of the test"))
    }

    fn take(&self, append: &Append) -> Option<Fault> {
        self.take_of(&String::from_utf8_lossy(&append.body))
    }

    fn take_of(&self, text: &str) -> Option<Fault> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let index = rules.iter().position(|rule| text.contains(&rule.containing))?;
        Some(rules.remove(index).fault)
    }

    async fn faulty<T>(
        &self,
        fault: Option<Fault>,
        operation: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let lost = || Error::new(ErrorCode::StoreUnavailable, "injected fault: the reply was lost");
        match fault {
            None => operation.await,
            Some(Fault::HoldBefore(gate)) => {
                gate.pass().await;
                operation.await
            }
            Some(Fault::HoldAfter(gate)) => {
                let outcome = operation.await;
                gate.pass().await;
                outcome
            }
            Some(Fault::FailBefore) => Err(lost()),
            Some(Fault::LoseReply) => {
                operation.await?;
                Err(lost())
            }
            Some(Fault::Refuse(code)) => Err(Error::new(code, "injected fault")),
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for FaultStore {
    fn scope(&self) -> StoreScope {
        self.inner.scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.inner.guarantees()
    }

    fn max_append_bytes(&self) -> usize {
        self.max_append_bytes
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        self.inner.write_queue()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.check(&first)?;
        let fault = self.take(&first);
        self.faulty(fault, self.inner.create_session(new, first)).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.check(&first)?;
        let fault = self.take(&first);
        self.faulty(fault, self.inner.fork(from, new, first)).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.check(&append)?;
        let fault = self.take(&append);
        self.faulty(fault, self.inner.append(append)).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        let fault = self.take_of(PAGE);
        let page = self.faulty(fault, self.inner.read_log(session, after, limit)).await?;
        self.read.fetch_add(page.len(), Ordering::Relaxed);
        Ok(page)
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        let fault = self.take_of(HEAD);
        self.faulty(fault, self.inner.head(session)).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let fault = self.take_of(LIST);
        self.faulty(fault, self.inner.list(filter, page)).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        self.inner.list_usage(filter, page).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        if let Some(gate) = &self.renewals {
            gate.pass().await;
        }
        self.inner.renew(session, run, ttl).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        let fault = self.take_of(SNAPSHOT);
        self.faulty(fault, self.inner.save_snapshot(session, snapshot)).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.inner.snapshot(session).await
    }

    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.delete_if(session, &BTreeMap::new()).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let fault = self.take_of(DELETE);
        self.faulty(fault, self.inner.delete_if(session, required_tags)).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.inner.purge(purge).await
    }
}
