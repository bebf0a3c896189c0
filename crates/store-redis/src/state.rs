//! The state store.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;

use helix_agents_core::error::{Error, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
};

use crate::error::{not_found, of_session};
use crate::{RedisStore, guarantees, script};

pub(crate) mod delete;
mod fork;
pub(crate) mod head;
mod index;
mod list;
mod log;
mod migration;
mod snapshot;
mod write;

/// Returns a function that adds the operation and the session to an error.
fn of(operation: &'static str, session: &SessionId) -> impl Fn(Error) -> Error {
    move |error| of_session(error, session).with_operation(operation)
}

#[async_trait]
impl StateStore for RedisStore {
    fn scope(&self) -> StoreScope {
        StoreScope::Network
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        guarantees::of(&self.inner.settings)
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        let of = of("store::create_session", &first.session);
        first.check_first(&new).map_err(&of)?;
        self.inner.create_session(&new, &first).await.map_err(of)
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        let of = of("store::fork", &first.session);
        first.check_fork(from, &new).map_err(&of)?;
        self.inner.fork(from, &new, &first).await.map_err(of)
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        let of = of("store::append", &append.session);
        append.check().map_err(&of)?;
        self.inner.append(&append).await.map_err(of)
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        self.inner.read(session, after, limit).await.map_err(of("store::read_log", session))
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        let found = match session.check() {
            Ok(()) => self.inner.find(session).await,
            Err(_) => Ok(None),
        };
        found.map(|found| found.map(|found| found.head)).map_err(of("store::head", session))
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let found = self.inner.list(&script::HEAD, filter, page).await;
        let found = found.map_err(|error| error.with_operation("store::list"))?;
        Ok(found.into_iter().map(|found| found.head).collect())
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let found = self.inner.list(&script::HEAD_USAGE, filter, page).await;
        let found = found.map_err(|error| error.with_operation("store::list_usage"))?;
        Ok(found
            .into_iter()
            .map(|found| SessionUsage { head: found.head, usage: found.usage })
            .collect())
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        let renewed = self.inner.renew(session, run, ttl).await;
        renewed
            .and_then(|renewal| renewal.ok_or_else(|| not_found(session)))
            .map_err(of("store::renew", session))
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        let of = of("store::save_snapshot", session);
        snapshot.check().map_err(&of)?;
        self.inner.save_snapshot(session, &snapshot).await.map_err(of)
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        self.inner.find_snapshot(session).await.map_err(of("store::snapshot", session))
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let deleted = self.inner.delete_if(session, required_tags).await;
        deleted.map_err(of("store::delete", session))
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        let purged = self.inner.purge(purge).await;
        purged.map_err(|error| error.with_operation("store::purge"))
    }
}
