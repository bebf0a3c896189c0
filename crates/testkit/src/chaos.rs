//! A store whose server is having a bad day: answers are late, lost, or never were.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Reach,
    Renewal, SessionFilter, StateStore, StoredAppend,
};

use crate::trees::Dice;

/// What becomes of one operation.
#[derive(Debug, Clone, Copy)]
enum Luck {
    /// Nothing special.
    Fine,
    /// It waits this long before it reaches the store.
    Late(Duration),
    /// It never reaches the store, and the answer leaves that open.
    Lost,
    /// It takes effect, and the answer is lost.
    Unanswered,
    /// It reaches the store twice, as with a network that sends again.
    Doubled,
}

/// A store with random faults: of three operations about one is struck. What it does follows from
/// the seed and the order of the operations.
#[derive(Debug, Clone)]
pub struct ChaosStore {
    inner: Arc<dyn StateStore>,
    dice: Arc<Mutex<Dice>>,
}

impl ChaosStore {
    /// The store on a bad day.
    pub fn new(inner: Arc<dyn StateStore>, seed: u64) -> Self {
        Self { inner, dice: Arc::new(Mutex::new(Dice::of(seed))) }
    }

    fn luck(&self) -> Luck {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        match dice.below(12) {
            0 => Luck::Late(Duration::from_millis(dice.below(5) as u64)),
            1 => Luck::Lost,
            2 => Luck::Unanswered,
            3 => Luck::Doubled,
            _ => Luck::Fine,
        }
    }

    async fn strike<T, F>(&self, operation: impl Fn() -> F + Send + Sync) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        let lost = || Error::new(ErrorCode::StoreUnavailable, "a bad day: the answer is lost");
        match self.luck() {
            Luck::Fine => operation().await,
            Luck::Late(wait) => {
                tokio::time::sleep(wait).await;
                operation().await
            }
            Luck::Lost => Err(lost()),
            Luck::Unanswered => {
                operation().await?;
                Err(lost())
            }
            Luck::Doubled => {
                operation().await?;
                operation().await
            }
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for ChaosStore {
    fn reach(&self) -> Reach {
        self.inner.reach()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.inner.guarantees()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.strike(|| self.inner.create_session(new.clone(), first.clone())).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        self.strike(|| self.inner.fork(from, new.clone(), first.clone())).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.strike(|| self.inner.append(append.clone())).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.strike(|| self.inner.read_log(session, after, limit)).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        self.strike(|| self.inner.head(session)).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        self.strike(|| self.inner.list(filter, page)).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        self.strike(|| self.inner.renew(session, run, ttl)).await
    }

    /// Deletions reach the store once: whether a session was there is answered by the first.
    async fn delete(&self, session: &SessionId) -> Result<bool> {
        self.inner.delete(session).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.inner.purge(purge).await
    }
}
