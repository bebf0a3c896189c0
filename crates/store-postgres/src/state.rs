//! The state store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, NewSession, Page, Purge, Renewal,
    SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
};

use crate::connections::drive;
use crate::detached::detached;
use crate::error::{located, not_found};
use crate::sql::{Schema, Sql};
use crate::{PostgresStore, guarantees};

pub(crate) mod append;
mod create;
pub(crate) mod delete;
mod fork;
mod head;
mod list;
mod log;
mod renew;
mod snapshot;

/// The statements on sessions and logs.
#[derive(Debug)]
pub(crate) struct Statements {
    append: append::Statements,
    create: Sql,
    pub(crate) delete: delete::Statements,
    fork: Sql,
    head: Sql,
    list: list::Statements,
    lookup: Sql,
    renew: Sql,
    snapshot: snapshot::Statements,
}

impl Statements {
    pub(crate) fn new(schema: &Schema) -> Self {
        Self {
            append: append::Statements::new(schema),
            create: create::statement(schema),
            delete: delete::Statements::new(schema),
            fork: fork::statement(schema),
            head: head::statement(schema),
            list: list::Statements::new(schema),
            lookup: log::statement(schema),
            renew: renew::statement(schema),
            snapshot: snapshot::Statements::new(schema),
        }
    }
}

#[async_trait]
impl StateStore for PostgresStore {
    fn scope(&self) -> StoreScope {
        StoreScope::Network
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        guarantees::of(&self.inner.settings)
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        const OPERATION: &str = "store::create_session";
        let inner = Arc::clone(&self.inner);
        let creation = async move {
            let summary = head::check_new(&new, &first).and_then(|()| first.check_first(&new));
            let summary = summary.map_err(|error| error.with_operation(OPERATION))?;
            let statements = &inner.state;
            let result = drive!(inner.connections, |connection| create::create(
                connection, statements, &new, &first, summary
            ));
            located(result, OPERATION, &first.session)
        };
        detached(creation).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        const OPERATION: &str = "store::fork";
        let (inner, from) = (Arc::clone(&self.inner), from.clone());
        let fork = async move {
            let summary =
                head::check_new(&new, &first).and_then(|()| first.check_fork(&from, &new));
            let summary = summary.map_err(|error| error.with_operation(OPERATION))?;
            let statements = &inner.state;
            let result = drive!(inner.connections, |connection| fork::fork(
                connection, statements, &from, &new, &first, summary
            ));
            located(result, OPERATION, &first.session)
        };
        detached(fork).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        const OPERATION: &str = "store::append";
        append.check().map_err(|error| error.with_operation(OPERATION))?;
        let inner = Arc::clone(&self.inner);
        let appending = async move {
            let session = append.session.clone();
            let (connections, statements) = (&inner.connections, &inner.state);
            let result = append::append(connections, statements, &inner.appends, append).await;
            located(result, OPERATION, &session)
        };
        detached(appending).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        const OPERATION: &str = "store::read_log";
        if session.check().is_err() {
            return located(Err(not_found(session).into()), OPERATION, session);
        }
        let (inner, session) = (Arc::clone(&self.inner), session.clone());
        let reading = async move {
            let lookup = &inner.state.lookup;
            let result = drive!(inner.connections, |connection| log::read(
                connection, lookup, &session, after, limit
            ));
            located(result, OPERATION, &session)
        };
        detached(reading).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        if session.check().is_err() {
            return Ok(None);
        }
        let (inner, session) = (Arc::clone(&self.inner), session.clone());
        let lookup = async move {
            let sql = &inner.state.head;
            let found =
                drive!(inner.connections, |connection| head::find(connection, sql, &session));
            located(found, "store::head", &session)
        };
        detached(lookup).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let (inner, filter, page) = (Arc::clone(&self.inner), filter.clone(), page.clone());
        let listing = async move {
            let statements = &inner.state.list;
            let result = drive!(inner.connections, |connection| list::list(
                connection, statements, &filter, &page
            ));
            result.map_err(|error| error.with_operation("store::list"))
        };
        detached(listing).await
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let (inner, filter, page) = (Arc::clone(&self.inner), filter.clone(), page.clone());
        let listing = async move {
            let statements = &inner.state.list;
            let result = drive!(inner.connections, |connection| list::list_usage(
                connection, statements, &filter, &page
            ));
            result.map_err(|error| error.with_operation("store::list_usage"))
        };
        detached(listing).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        let (inner, session, run) = (Arc::clone(&self.inner), session.clone(), run.clone());
        let renewal = async move {
            let sql = &inner.state.renew;
            let result = drive!(inner.connections, |connection| renew::extend(
                connection, sql, &session, &run, ttl
            ));
            located(result, "store::renew", &session)
        };
        detached(renewal).await
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        const OPERATION: &str = "store::save_snapshot";
        snapshot.check().map_err(|error| error.with_operation(OPERATION))?;
        if session.check().is_err() {
            return Ok(());
        }
        let (inner, session) = (Arc::clone(&self.inner), session.clone());
        let saving = async move {
            let statements = &inner.state.snapshot;
            let result = drive!(inner.connections, |connection| snapshot::save(
                connection, statements, &session, &snapshot
            ));
            located(result, OPERATION, &session)
        };
        detached(saving).await
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        if session.check().is_err() {
            return Ok(None);
        }
        let (inner, session) = (Arc::clone(&self.inner), session.clone());
        let lookup = async move {
            let statements = &inner.state.snapshot;
            let found = drive!(inner.connections, |connection| snapshot::find(
                connection, statements, &session
            ));
            located(found, "store::snapshot", &session)
        };
        detached(lookup).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        if session.check().is_err() {
            return Ok(false);
        }
        let (store, session) = (self.clone(), session.clone());
        let required_tags = required_tags.clone();
        let deletion = async move {
            let statements = &store.inner.state.delete;
            let result = drive!(store.inner.connections, |connection| delete::delete_if(
                connection,
                statements,
                &session,
                &required_tags
            ));
            let deleted = located(result, "store::delete", &session)?;
            deleted.iter().for_each(|session| store.wake(session));
            Ok(!deleted.is_empty())
        };
        detached(deletion).await
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        self.purge_all(purge).await
    }
}
