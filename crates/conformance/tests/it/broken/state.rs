//! The session store of a broken store.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::Result;
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Guard, Head, LeaseChange, NewSession, Page,
    Purge, Renewal, SessionFilter, SessionUsage, Snapshot, StateStore, StoreScope, StoredAppend,
    Summary, WriteQueue,
};

use super::{Breakage, Broken, Loss};

/// The difference between the clocks of consecutive handles.
const OFF: Duration = Duration::from_secs(7);

/// The time for which a session exists partly.
const PART: Duration = Duration::from_millis(50);

impl Broken {
    fn sessions(&self) -> &dyn StateStore {
        &self.shared.sessions
    }

    /// Returns how far this handle's clock is ahead.
    fn ahead(&self) -> Duration {
        let is_off = matches!(self.breakage(), Some(Breakage::ClockPerHandle));
        if is_off { OFF * self.number } else { Duration::ZERO }
    }

    /// Returns the append as it is stored.
    fn kept(&self, mut append: Append) -> Append {
        append.session = self.name(&append.session);
        match self.breakage() {
            Some(Breakage::Appends(loss)) => {
                append.id = loss(append.id.as_str()).into();
                append.expected.append = loss(append.expected.append.as_str()).into();
            }
            Some(Breakage::SchemaOfOneByte) => append.schema %= 1 << 8,
            Some(Breakage::CountOfTwoBytes) => append.count %= 1 << 16,
            Some(Breakage::IdsUnchecked) => unchecked(&mut append),
            Some(Breakage::LeaseEndsWithRun)
                if append.summary.as_ref().is_some_and(|summary| summary.run.is_none()) =>
            {
                append.lease = LeaseChange::Clear;
            }
            _ => {}
        }
        if let LeaseChange::Take(ttl) = &mut append.lease {
            *ttl = ttl.saturating_add(self.ahead());
        }
        append
    }

    /// Returns a head as this handle reads it.
    fn read(&self, head: Head) -> Head {
        Head { read_at: head.read_at.after(self.ahead()), ..head }
    }

    /// Judges a guard wrongly: returns an outcome, or replaces the guard.
    async fn misjudge(&self, append: &mut Append) -> Result<Option<AppendOutcome>> {
        let head = self.sessions().head(&append.session).await?;
        let Some(head) = head.filter(|head| head.position == append.expected) else {
            return Ok(None);
        };
        let (now, until) = (head.read_at, head.lease_until);
        let refused = |lease_until| Ok(Some(AppendOutcome::GuardFailed { lease_until, now }));
        match (self.breakage(), append.guard) {
            (Some(Breakage::LeaseHeldAtItsEnd), Guard::LeaseFree) if until == Some(now) => {
                return refused(until);
            }
            (Some(Breakage::DeadlineExcluded), Guard::NotAfter(end)) if end == now => {
                return refused(None);
            }
            (Some(Breakage::LeaseFreeBeforeItsEnd), Guard::LeaseFree)
                if until == Some(Timestamp(now.0 + 1)) =>
            {
                append.guard = Guard::None;
            }
            (Some(Breakage::ClockPerHandle), Guard::LeaseFree)
                if until.is_none_or(|until| until <= now.after(self.ahead())) =>
            {
                append.guard = Guard::None;
            }
            _ => {}
        }
        Ok(None)
    }

    /// Creates a session that others see before its log.
    async fn in_parts<T>(
        &self,
        session: &SessionId,
        creation: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        if !matches!(self.breakage(), Some(Breakage::CreatedInParts)) {
            return creation.await;
        }
        self.shared.partly.lock().unwrap().push(session.clone());
        let created = creation.await;
        // Until another handle has read it, if one does.
        drop(tokio::time::timeout(PART, self.shared.seen.pass()).await);
        self.shared.partly.lock().unwrap().retain(|other| other != session);
        created
    }

    /// Records the usage of an append in the broken way. `before` is the original of a fork.
    async fn note_usage(&self, append: &Append, was_taken: bool, before: Option<&SessionId>) {
        if matches!(self.breakage(), Some(Breakage::UsageLater)) {
            self.wait_for_look().await;
        }
        let mut usages = self.shared.usages.lock().unwrap();
        let of_original = before.and_then(|from| usages.get(from).cloned()).flatten();
        let (session, said) = (append.session.clone(), append.usage.clone());
        match self.breakage() {
            Some(Breakage::UsageCleared) if was_taken => {
                usages.insert(session, said);
            }
            Some(Breakage::UsageOfRefused) if said.is_some() => {
                usages.insert(session, said);
            }
            Some(Breakage::UsageForked) if was_taken => {
                let kept = usages.entry(session).or_insert(None);
                *kept = match before {
                    Some(_) => of_original,
                    None => said.or(kept.take()),
                };
            }
            Some(Breakage::UsageKept) if was_taken && said.is_some() => {
                usages.insert(session, said);
            }
            Some(Breakage::UsageLater) if was_taken => {
                let kept = usages.entry(session).or_insert(None);
                *kept = said.or(kept.take());
            }
            _ => {}
        }
    }

    /// Waits until another handle has listed usage or by tag, if one does.
    pub(super) async fn wait_for_look(&self) {
        let before = self.shared.looks.load(Ordering::SeqCst);
        let looked = async {
            while self.shared.looks.load(Ordering::SeqCst) == before {
                tokio::task::yield_now().await;
            }
        };
        drop(tokio::time::timeout(PART, looked).await);
    }

    async fn keep_bodies(&self, session: &SessionId) -> Result<()> {
        if matches!(self.breakage(), Some(Breakage::BodiesKept))
            && self.sessions().head(session).await?.is_some()
        {
            let log = self.sessions().read_log(session, 0, u32::MAX).await?;
            self.shared.attic.lock().unwrap().extend(log.into_iter().map(|append| append.body));
        }
        Ok(())
    }
}

/// Replaces ids that would be refused.
fn unchecked(append: &mut Append) {
    let any = || "any";
    if append.id.check().is_err() {
        append.id = AppendId::from(any());
    }
    let current = append.summary.as_mut().and_then(|summary| summary.run.as_mut());
    for run in [append.run.as_mut(), current].into_iter().flatten() {
        if run.check().is_err() {
            *run = RunId::from(any());
        }
    }
}

fn is_the_same(loss: Loss, one: &RunId, other: &RunId) -> bool {
    loss(one.as_str()) == loss(other.as_str())
}

#[async_trait]
impl StateStore for Broken {
    fn scope(&self) -> StoreScope {
        self.sessions().scope()
    }

    fn guarantees(&self) -> Vec<Guarantee> {
        self.sessions().guarantees()
    }

    fn write_queue(&self) -> Option<WriteQueue> {
        self.claimed_queue()
    }

    async fn create_session(&self, new: NewSession, first: Append) -> Result<CreateOutcome> {
        let mut first = self.kept(first);
        if matches!(self.breakage(), Some(Breakage::ParentUnchecked)) {
            first.guard = Guard::None;
        }
        let session = first.session.clone();
        let (said, new) = (first.clone(), self.accepted(new));
        let creation = self.sessions().create_session(new.clone(), first);
        let created = self.in_parts(&session, creation).await;
        let was_taken = matches!(created, Ok(CreateOutcome::Created { .. }));
        self.note_usage(&said, was_taken, None).await;
        self.add_tags(&session, &new, was_taken, None).await;
        created
    }

    async fn fork(&self, from: &SessionId, new: NewSession, first: Append) -> Result<ForkOutcome> {
        let (from, first) = (self.name(from), self.kept(first));
        let session = first.session.clone();
        let snapshot = self.sessions().snapshot(&from).await?;
        let (said, new) = (first.clone(), self.accepted(new));
        let forking = self.sessions().fork(&from, new.clone(), first);
        let forked = self.in_parts(&session, forking).await;
        let was_taken = matches!(forked, Ok(ForkOutcome::Created { .. }));
        self.note_usage(&said, was_taken, Some(&from)).await;
        self.add_tags(&session, &new, was_taken, Some(&from)).await;
        if let (Some(Breakage::SnapshotsForked), Some(snapshot)) = (self.breakage(), snapshot) {
            self.sessions().save_snapshot(&session, snapshot).await?;
        }
        forked
    }

    async fn append(&self, append: Append) -> Result<AppendOutcome> {
        let mut append = self.kept(append);
        let session = append.session.clone();
        if let Some(answer) = self.misjudge(&mut append).await? {
            return Ok(answer);
        }
        let mut outcome = self.sessions().append(append.clone()).await?;
        let was_taken = matches!(outcome, AppendOutcome::Appended { .. });
        self.note_usage(&append, was_taken, None).await;
        match (&mut outcome, self.breakage()) {
            (AppendOutcome::Conflict { missed }, Some(Breakage::Missed(most))) => {
                missed.truncate(most);
            }
            (AppendOutcome::GuardFailed { now, .. }, Some(Breakage::ClockPerHandle)) => {
                *now = now.after(self.ahead());
            }
            (AppendOutcome::Appended { .. }, Some(Breakage::HeadOfWriterCached)) => {
                if let Some(head) = self.sessions().head(&session).await? {
                    self.heads.lock().unwrap().insert(session, head);
                }
            }
            _ => {}
        }
        Ok(outcome)
    }

    async fn read_log(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<StoredAppend>> {
        let session = self.name(session);
        if self.shared.partly.lock().unwrap().contains(&session) {
            self.shared.seen.open();
            return Ok(Vec::new());
        }
        self.sessions().read_log(&session, after, limit).await
    }

    async fn head(&self, session: &SessionId) -> Result<Option<Head>> {
        let cached = self.heads.lock().unwrap().get(session).cloned();
        let head = match cached {
            Some(head) => Some(head),
            None => self.sessions().head(&self.name(session)).await?,
        };
        Ok(head.map(|head| self.read(head)))
    }

    async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        let filter = self.filter(filter);
        if let Some(found) = self.list_tagged(&filter, page).await? {
            return Ok(found.into_iter().map(|found| found.head).collect());
        }
        let mut heads = self.sessions().list(&filter, page).await?;
        match self.breakage() {
            Some(Breakage::ListedByUpdate) => heads.sort_by_key(|head| Reverse(head.updated_at)),
            Some(Breakage::ListedByName) => heads.sort_by_key(|head| Reverse(head.session.clone())),
            Some(Breakage::MomentNotListed) => heads.retain(|head| {
                let moment = if filter.wake_due { head.summary.wake_at } else { head.lease_until };
                !(filter.wake_due || filter.lease_expired) || moment != Some(head.read_at)
            }),
            _ => {}
        }
        Ok(heads.into_iter().map(|head| self.read(head)).collect())
    }

    async fn list_usage(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<SessionUsage>> {
        let filter = self.filter(filter);
        if let Some(found) = self.list_tagged(&filter, page).await? {
            return Ok(found);
        }
        let mut found = self.sessions().list_usage(&filter, page).await?;
        self.shared.looks.fetch_add(1, Ordering::SeqCst);
        let usages = self.shared.usages.lock().unwrap();
        for usage in &mut found {
            usage.head = self.read(usage.head.clone());
            if let Some(kept) = usages.get(&usage.head.session) {
                usage.usage = kept.clone();
            }
        }
        Ok(found)
    }

    async fn renew(&self, session: &SessionId, run: &RunId, ttl: Duration) -> Result<Renewal> {
        let session = self.name(session);
        let head = self.sessions().head(&session).await?;
        let mut run = run.clone();
        let mut ttl = ttl.saturating_add(self.ahead());
        match (self.breakage(), head) {
            (
                Some(Breakage::Runs(loss)),
                Some(Head { summary: Summary { run: Some(current), .. }, .. }),
            ) if is_the_same(loss, &current, &run) => run = current,
            (Some(Breakage::RenewalOnlyExtends), Some(head)) => {
                ttl = ttl.max(head.lease_until.map_or(ttl, |until| until.since(head.read_at)));
            }
            _ => {}
        }
        let renewal = self.sessions().renew(&session, &run, ttl).await?;
        Ok(Renewal { head: self.read(renewal.head), ..renewal })
    }

    async fn save_snapshot(&self, session: &SessionId, snapshot: Snapshot) -> Result<()> {
        let session = self.name(session);
        let kept = match self.breakage() {
            Some(Breakage::LastSnapshot | Breakage::SnapshotsKept) => &self.shared.snapshots,
            Some(Breakage::SnapshotsPerHandle) => &self.snapshots,
            _ => return self.sessions().save_snapshot(&session, snapshot).await,
        };
        kept.lock().unwrap().insert(session, snapshot);
        Ok(())
    }

    async fn snapshot(&self, session: &SessionId) -> Result<Option<Snapshot>> {
        let session = self.name(session);
        let kept = match self.breakage() {
            Some(Breakage::LastSnapshot | Breakage::SnapshotsKept) => &self.shared.snapshots,
            Some(Breakage::SnapshotsPerHandle) => &self.snapshots,
            _ => return self.sessions().snapshot(&session).await,
        };
        Ok(kept.lock().unwrap().get(&session).cloned())
    }

    async fn delete_if(
        &self,
        session: &SessionId,
        required_tags: &BTreeMap<String, String>,
    ) -> Result<bool> {
        let session = self.name(session);
        self.keep_bodies(&session).await?;
        match self.breakage() {
            Some(Breakage::TagsNotRequired) => self.sessions().delete(&session).await,
            _ => self.sessions().delete_if(&session, required_tags).await,
        }
    }

    async fn purge(&self, purge: &Purge) -> Result<u64> {
        if !matches!(self.breakage(), Some(Breakage::PurgedByCreation)) {
            return self.sessions().purge(purge).await;
        }
        let mut purged = 0;
        let all = self.sessions().list(&SessionFilter::default(), &Page::default()).await?;
        for head in all {
            let is_old = head.read_at.since(head.created_at) >= purge.older_than;
            if is_old && purge.statuses.contains(&head.summary.status) {
                purged += u64::from(self.sessions().delete(&head.session).await?);
            }
        }
        Ok(purged)
    }
}
