//! The state store: the contract for sessions.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents::clock::Timestamp;
use helix_agents::error::Result;
use helix_agents::guarantee::{Guarantee, GuaranteeKind};
use helix_agents::id::{RunId, SessionId};
use helix_agents::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Head, LeaseChange, MAX_PAGE, NewSession,
    Page, Purge, Renewal, SessionFilter, SessionUsage, StateStore, StoreScope, StoredAppend,
    Summary,
};

use super::log::{Decision, Log};
use super::record::{Appended, Record};
use super::{FileStore, Inner, now};

#[async_trait]
impl StateStore for FileStore {
    fn scope(&self) -> StoreScope {
        StoreScope::Machine
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        vec![
            Guarantee::provided(
                GuaranteeKind::SurvivesKill,
                "an append is acknowledged after it is in the file, and an incomplete record is truncated",
            ),
            Guarantee::provided(
                GuaranteeKind::SurvivesPowerLoss,
                "an append is acknowledged only after the disk has confirmed it; streams are lost",
            ),
            Guarantee::provided(
                GuaranteeKind::SharedByProcesses,
                "processes of one machine synchronize through a lock on the file",
            ),
        ]
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        self.with("store::create_session", |inner| inner.create(new, first)).await
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        let from = from.clone();
        self.with("store::fork", move |inner| inner.fork(from, new, first)).await
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        self.with("store::append", |inner| inner.append(append)).await
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        let session = session.clone();
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.with("store::read_log", move |inner| Ok(inner.log(&session)?.read(after, limit))).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        let session = session.clone();
        let head =
            move |inner: &mut Inner| Ok(inner.sessions.get(&session).map(|log| log.head_at(now())));
        self.with("store::head", head).await
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let (filter, page) = (filter.clone(), page.clone());
        let found = self.with("store::list", move |inner| inner.list(&filter, &page)).await?;
        Ok(found.into_iter().map(|session| session.head).collect())
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let (filter, page) = (filter.clone(), page.clone());
        self.with("store::list_usage", move |inner| inner.list(&filter, &page)).await
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        let (session, run) = (session.clone(), run.clone());
        self.with("store::renew", move |inner| inner.renew(session, &run, ttl)).await
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let (session, required) = (session.clone(), required_tags.clone());
        let delete = move |inner: &mut Inner| inner.delete_if(session, &required);
        let deleted = self.with("store::delete", delete).await?;
        self.forget_streams(&deleted).await?;
        Ok(!deleted.is_empty())
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        let purge = purge.clone();
        let deleted = self.with("store::purge", move |inner| inner.purge(&purge)).await?;
        self.forget_streams(&deleted).await?;
        Ok(deleted.len() as u64)
    }
}

impl Inner {
    fn create(&mut self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        let summary = first.check_first(&new)?.clone();
        if let Some(log) = self.sessions.get(&first.session) {
            let same = log.created_at(&first.expected).filter(|append| append.id == first.id);
            return Ok(same
                .map_or(CreateOutcome::Exists, |append| CreateOutcome::Created { at: append.at }));
        }
        let is_missing = |parent| !self.sessions.contains_key(parent);
        if first.required_parent(&new).is_some_and(is_missing) {
            return Ok(CreateOutcome::ParentMissing);
        }
        let at = now();
        let append = first_append(first, summary, at);
        self.write(Record::Created { new, append })?;
        Ok(CreateOutcome::Created { at })
    }

    fn fork(&mut self, from: SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        let summary = first.check_fork(&from, &new)?.clone();
        if let Some(log) = self.sessions.get(&first.session) {
            let same = log.created_at(&first.expected).filter(|append| append.id == first.id);
            return Ok(
                same.map_or(ForkOutcome::Exists, |append| ForkOutcome::Created { at: append.at })
            );
        }
        let Some(last) = self.log(&from)?.ending(&first.expected) else {
            return Ok(ForkOutcome::HistoryLost);
        };
        let at = now().max(last.at);
        let append = first_append(first, summary, at);
        self.write(Record::Forked { from, new, append })?;
        Ok(ForkOutcome::Created { at })
    }

    fn append(&mut self, append: Append) -> Result<AppendOutcome> {
        append.check()?;
        match self.log(&append.session)?.decide(append, now()) {
            Decision::Reply(outcome) => Ok(outcome),
            Decision::Accept(append) => {
                let at = append.at;
                self.write(Record::Appended(append))?;
                Ok(AppendOutcome::Appended { at })
            }
        }
    }

    fn renew(&mut self, session: SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        let head = self.log(&session)?.head_at(now());
        if head.summary.run.as_ref() != Some(run) {
            return Ok(Renewal { renewed: false, head });
        }
        let until = head.read_at.after(ttl);
        self.write(Record::Renewed { session, until })?;
        Ok(Renewal { renewed: true, head: Head { lease_until: Some(until), ..head } })
    }

    fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        filter.check()?;
        let after = match &page.after {
            Some(session) => Some(place(&self.log(session)?.head)),
            None => None,
        };
        let now = now();
        let mut found: Vec<SessionUsage> = self
            .sessions
            .values()
            .map(|log| SessionUsage { head: log.head_at(now), usage: log.usage.clone() })
            .filter(|session| after.as_ref().is_none_or(|after| place(&session.head) < *after))
            .filter(|session| passes(&session.head, filter, now))
            .collect();
        found.sort_unstable_by_key(|session| Reverse(place(&session.head)));
        found.truncate(page.limit.min(MAX_PAGE) as usize);
        Ok(found)
    }

    /// Deletes a session that has these tags, and its descendants. Returns the deleted sessions.
    fn delete_if(
        &mut self,
        session: SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<Vec<SessionId>> {
        let has_tags = |log: &Log| log.head.created.has_tags(required_tags);
        if self.sessions.get(&session).is_some_and(has_tags) {
            self.remove(session)
        } else {
            Ok(Vec::new())
        }
    }

    fn purge(&mut self, purge: &Purge) -> Result<Vec<SessionId>> {
        let now = now();
        let heads: Vec<_> = self.sessions.values().map(|log| log.head_at(now)).collect();
        let mut deleted = Vec::new();
        for root in purge.roots(&heads) {
            deleted.extend(self.remove(root)?);
        }
        Ok(deleted)
    }

    /// Removes an existing session and its descendants. Returns the removed sessions.
    fn remove(&mut self, session: SessionId) -> Result<Vec<SessionId>> {
        let mut sessions = vec![session];
        let mut visited = 0;
        while let Some(parent) = sessions.get(visited).cloned() {
            let is_child = |log: &&Log| log.head.created.parent.as_ref() == Some(&parent);
            let children = self.sessions.values().filter(is_child);
            sessions.extend(children.map(|log| log.head.session.clone()));
            visited += 1;
        }
        self.write(Record::Deleted { sessions: sessions.clone() })?;
        Ok(sessions)
    }
}

/// Converts the first append of a session.
fn first_append(first: Append, summary: Summary, at: Timestamp) -> Appended {
    let lease_until = match first.lease {
        LeaseChange::Take(ttl) => Some(at.after(ttl)),
        LeaseChange::Keep | LeaseChange::Clear => None,
    };
    Appended {
        session: first.session,
        first: first.expected.version + 1,
        count: first.count,
        id: first.id,
        run: first.run,
        schema: first.schema,
        at,
        summary,
        lease_until,
        usage: first.usage,
        body: first.body,
    }
}

/// Returns the sort key of a session in a list. The highest key comes first.
fn place(head: &Head) -> (Timestamp, SessionId) {
    (head.created_at, head.session.clone())
}

fn passes(head: &Head, filter: &SessionFilter, now: Timestamp) -> bool {
    fn is<T: PartialEq>(asked: Option<&T>, found: &T) -> bool {
        asked.is_none_or(|asked| asked == found)
    }
    let summary = &head.summary;
    let expired = || summary.run.is_some() && head.lease_until.is_none_or(|until| until <= now);
    let due = || summary.wake_at.is_some_and(|at| at <= now);
    is(filter.agent.as_ref(), &head.created.agent)
        && is(filter.status.as_ref(), &summary.status)
        && is(filter.root.as_ref(), &head.created.root)
        && is(filter.runtime.as_ref(), &summary.runtime)
        && (!filter.pending || summary.pending > 0)
        && (!filter.lease_expired || expired())
        && (!filter.wake_due || due())
        && filter.is_created_in_range(head.created_at)
        && head.created.has_tags(&filter.tags)
}
