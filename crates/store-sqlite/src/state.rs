//! The state store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;

use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend, WriteQueue,
};

use crate::error::{Failure, of_session};
use crate::prepared::Tables;
use crate::writer::Durability;
use crate::{SqliteStore, guarantees};

mod delete;
mod fork;
mod head;
mod list;
mod log;
mod purge;
mod snapshot;
mod tags;
pub(crate) mod write;

impl SqliteStore {
    async fn write_state<T: Send + 'static>(
        &self,
        operation: &'static str,
        session: &SessionId,
        durability: Durability,
        work: impl FnMut(&mut Tables<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let result = self.inner.writer.run(durability, work, |_| ()).await;
        result.map_err(|error| of_session(error, session).with_operation(operation))
    }

    /// Deletes sessions and wakes the readers of their streams. Returns the number of deleted
    /// sessions.
    async fn forget(
        &self,
        work: impl FnMut(&mut Tables<'_>) -> Result<Vec<SessionId>, Failure> + Send + 'static,
    ) -> Result<u64> {
        let watch = Arc::clone(&self.inner.watch);
        let wake = move |deleted: &Vec<SessionId>| {
            deleted.iter().for_each(|session| watch.written(session))
        };
        let deleted = self.inner.writer.run(self.inner.durability, work, wake).await?;
        Ok(deleted.len() as u64)
    }

    async fn read_state<T: Send + 'static>(
        &self,
        operation: &'static str,
        session: &SessionId,
        work: impl FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let result = self.inner.readers.run(work).await;
        result.map_err(|error| of_session(error, session).with_operation(operation))
    }
}

#[async_trait]
impl StateStore for SqliteStore {
    fn scope(&self) -> StoreScope {
        StoreScope::Machine
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        guarantees::of(self.inner.synchronous)
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        Some(self.inner.write_queue)
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        const OPERATION: &str = "store::create_session";
        first.check_first(&new).map_err(|error| error.with_operation(OPERATION))?;
        let of = first.session.clone();
        let create = move |tables: &mut Tables<'_>| write::create(tables, &new, &first);
        self.write_state(OPERATION, &of, self.inner.durability, create).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        const OPERATION: &str = "store::fork";
        first.check_fork(from, &new).map_err(|error| error.with_operation(OPERATION))?;
        let from = from.clone();
        let of = first.session.clone();
        let fork = move |tables: &mut Tables<'_>| fork::fork(tables, &from, &new, &first);
        self.write_state(OPERATION, &of, self.inner.durability, fork).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        const OPERATION: &str = "store::append";
        append.check().map_err(|error| error.with_operation(OPERATION))?;
        let of = append.session.clone();
        let append = move |tables: &mut Tables<'_>| write::append(tables, &append);
        self.write_state(OPERATION, &of, self.inner.durability, append).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        let of = session.clone();
        let read = move |connection: &mut Connection| log::read(connection, &of, after, limit);
        self.read_state("store::read_log", session, read).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        let of = session.clone();
        let find = move |connection: &mut Connection| head::find(connection, &of);
        self.read_state("store::head", session, find).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let (filter, page) = (filter.clone(), page.clone());
        let list = move |connection: &mut Connection| list::list(connection, &filter, &page);
        let result = self.inner.readers.run(list).await;
        result.map_err(|error| error.with_operation("store::list"))
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let (filter, page) = (filter.clone(), page.clone());
        let list = move |connection: &mut Connection| list::list_usage(connection, &filter, &page);
        let result = self.inner.readers.run(list).await;
        result.map_err(|error| error.with_operation("store::list_usage"))
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        let (of, run) = (session.clone(), run.clone());
        let renew = move |tables: &mut Tables<'_>| write::renew(tables, &of, &run, ttl);
        // A lease does not have to survive a crash of the system, because its owner does not
        // survive it either.
        self.write_state("store::renew", session, Durability::Process, renew).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        const OPERATION: &str = "store::save_snapshot";
        snapshot.check().map_err(|error| error.with_operation(OPERATION))?;
        let of = session.clone();
        let save = move |tables: &mut Tables<'_>| snapshot::save(tables, &of, &snapshot);
        // A snapshot is derived from the log, so it does not have to be synced to the disk.
        self.write_state(OPERATION, session, Durability::Process, save).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        let of = session.clone();
        let find = move |connection: &mut Connection| snapshot::find(connection, &of);
        self.read_state("store::snapshot", session, find).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let (of, required) = (session.clone(), required_tags.clone());
        let deleted = self.forget(move |tables| delete::delete_if(tables, &of, &required)).await;
        let deleted = deleted.map_err(|error| of_session(error, session));
        Ok(deleted.map_err(|error| error.with_operation("store::delete"))? > 0)
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        let mut deleted = 0;
        loop {
            let purge = purge.clone();
            let done = self.forget(move |tables| purge::purge_some(tables, &purge)).await;
            match done.map_err(|error| error.with_operation("store::purge"))? {
                0 => return Ok(deleted),
                some => deleted += some,
            }
        }
    }
}
