//! Creating, appending and renewing: one script each, whatever the length of the log.

use std::time::Duration;

use uuid::Uuid;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, Guard, LeaseChange, NewSession, Position, Renewal,
    Summary,
};

use super::head::{self, Part, milliseconds};
use super::index;
use crate::error::not_found;
use crate::reply::{Reply, optional};
use crate::{Inner, script};

/// The outcome of the creation script.
pub(super) enum CreationOutcome {
    Created(Timestamp),
    /// The session exists. Its own log begins after this position, with this append.
    Exists {
        after: Position,
        first: AppendId,
        at: Timestamp,
    },
}

/// The base of a new session.
#[derive(Default)]
pub(super) struct ForkBase {
    pub(super) base: Vec<Part>,
    /// The time of the last append of the base.
    pub(super) at: Timestamp,
}

/// Returns a unique id for a new generation of a session.
pub(super) fn generation() -> String {
    Uuid::now_v7().simple().to_string()
}

impl Inner {
    pub(super) async fn create_session(
        &self,
        new: &NewSession,
        first: &Append,
    ) -> Result<CreateOutcome> {
        let generation = generation();
        let (at, own) = match self.begin(new, first, &generation, &ForkBase::default()).await? {
            CreationOutcome::Created(at) => (at, Some(generation)),
            CreationOutcome::Exists { after, first: id, at }
                if after.version == 0 && id == first.id =>
            {
                (at, None)
            }
            CreationOutcome::Exists { .. } => return Ok(CreateOutcome::Exists),
        };
        if let Some(parent) = first.required_parent(new)
            && self.find(parent).await?.is_none()
        {
            // The keys of two sessions may be on different servers, so no script sees both. A
            // deletion lists the tree again after it has deleted the parent: it finds each child
            // that was created before, and each later one is deleted here.
            // Another process may have deleted the child and created it again.
            if let Some(child) = self.find(&first.session).await?
                && own.is_none_or(|own| own == child.generation)
            {
                self.delete_one(&child, None).await?;
            }
            return Ok(CreateOutcome::ParentMissing);
        }
        Ok(CreateOutcome::Created { at })
    }

    pub(super) async fn begin(
        &self,
        new: &NewSession,
        first: &Append,
        generation: &str,
        fork_base: &ForkBase,
    ) -> Result<CreationOutcome> {
        let outcome = loop {
            let at = self.list_generation(new, &first.session, generation, fork_base.at).await?;
            self.add_index_entries(first).await?;
            if let Some(outcome) = self.create(new, first, generation, fork_base, at).await? {
                break outcome;
            }
        };
        // If the wake time has long passed, the entry may have been removed as stale before the
        // session existed. So it is added again.
        if let (CreationOutcome::Created(_), Some(Summary { wake_at: Some(_), .. })) =
            (&outcome, &first.summary)
        {
            self.add_index_entries(first).await?;
        }
        // Removes the unneeded index entries. A failure is harmless.
        if let CreationOutcome::Exists { .. } = outcome {
            let _removed = self.unlist_generation(new, &first.session, generation).await;
        }
        Ok(outcome)
    }

    /// Runs the creation script. Returns `None` if the index entries may have been removed
    /// meanwhile.
    async fn create(
        &self,
        new: &NewSession,
        first: &Append,
        generation: &str,
        fork_base: &ForkBase,
        at: Timestamp,
    ) -> Result<Option<CreationOutcome>> {
        let message = "a session's first append needs a summary";
        let summary = first.summary.as_ref();
        let summary = summary.ok_or_else(|| Error::new(ErrorCode::InputInvalid, message))?;
        let tags = serde_json::to_string(&new.tags).map_err(json)?;
        let base = match &*fork_base.base {
            [] => String::new(),
            parts => serde_json::to_string(parts).map_err(json)?,
        };
        let keys = self.keys.of(&first.session);
        let (lease, duration) = lease(first.lease);
        let summary_args = SummaryArgs::of(summary);
        let tag = index::tag(first);
        let version = first.expected.version.to_string();
        let run = optional(first.run.as_ref().map(RunId::as_str));
        let parent = optional(new.parent.as_ref().map(SessionId::as_str));
        let (schema, count, at) =
            (first.schema.to_string(), first.count.to_string(), at.0.to_string());
        let if_there = |value: &str| if value.is_empty() { "" } else { &*tag }.to_owned();
        let (ran, woken) = (if_there(&summary_args.run), if_there(&summary_args.wake));
        let usage = usage_text(first)?;
        let args: [&[u8]; 25] = [
            generation.as_bytes(),
            first.session.as_str().as_bytes(),
            new.agent.as_bytes(),
            new.root.as_str().as_bytes(),
            parent.as_bytes(),
            tags.as_bytes(),
            at.as_bytes(),
            base.as_bytes(),
            version.as_bytes(),
            first.expected.append.as_str().as_bytes(),
            first.id.as_str().as_bytes(),
            run.as_bytes(),
            schema.as_bytes(),
            count.as_bytes(),
            &first.body,
            lease.as_bytes(),
            duration.as_bytes(),
            summary_args.status.as_bytes(),
            summary_args.run.as_bytes(),
            summary_args.runtime.as_bytes(),
            summary_args.pending.as_bytes(),
            summary_args.wake.as_bytes(),
            ran.as_bytes(),
            woken.as_bytes(),
            usage.as_bytes(),
        ];
        let keys = [keys.head(), keys.log()];
        let mut reply = self.server.eval(&script::CREATE, &keys, &args).await?;
        match &*reply.text()? {
            "created" => Ok(Some(CreationOutcome::Created(reply.time()?))),
            "late" => Ok(None),
            _ => {
                let (version, append) = (reply.number()?, AppendId::from(reply.text()?));
                let (first, at) = (AppendId::from(reply.text()?), reply.time()?);
                Ok(Some(CreationOutcome::Exists { after: Position { version, append }, first, at }))
            }
        }
    }

    pub(super) async fn append(&self, append: &Append) -> Result<AppendOutcome> {
        // Most appends do not change the run or the wake time. The script detects a change and
        // requests index entries.
        let mut is_announced = false;
        loop {
            let mut reply = self.try_append(append, is_announced).await?;
            let outcome = match &*reply.text()? {
                "index" => {
                    self.add_index_entries(append).await?;
                    is_announced = true;
                    continue;
                }
                "appended" => return self.appended(append, is_announced, reply).await,
                "repeated" => return Ok(AppendOutcome::Appended { at: reply.time()? }),
                "guard" => {
                    let (lease_until, now) = (reply.time_or_none()?, reply.time()?);
                    AppendOutcome::GuardFailed { lease_until, now }
                }
                "conflict" => self.conflict(append).await?,
                "shared" => self.outcome_in_base(append, &reply.text()?).await?,
                "lost" => AppendOutcome::HistoryLost,
                _ => return Err(not_found(&append.session)),
            };
            return Ok(outcome);
        }
    }

    async fn try_append(&self, append: &Append, is_announced: bool) -> Result<Reply> {
        let keys = self.keys.of(&append.session);
        let version = append.expected.version.to_string();
        let run = optional(append.run.as_ref().map(RunId::as_str));
        let (schema, count) = (append.schema.to_string(), append.count.to_string());
        let (lease, duration) = lease(append.lease);
        let (guard, time) = match append.guard {
            Guard::None | Guard::ParentExists => ("", String::new()),
            Guard::NotAfter(at) => ("not_after", at.0.to_string()),
            Guard::LeaseFree => ("lease_free", String::new()),
        };
        let tag = index::tag(append);
        let usage = usage_text(append)?;
        let mut args: Vec<&[u8]> = vec![
            version.as_bytes(),
            append.expected.append.as_str().as_bytes(),
            append.id.as_str().as_bytes(),
            run.as_bytes(),
            schema.as_bytes(),
            count.as_bytes(),
            &append.body,
            lease.as_bytes(),
            duration.as_bytes(),
            guard.as_bytes(),
            time.as_bytes(),
            tag.as_bytes(),
            if is_announced { b"1" } else { b"0" },
            usage.as_bytes(),
        ];
        let summary_args = append.summary.as_ref().map(SummaryArgs::of);
        if let Some(SummaryArgs { status, run, runtime, pending, wake }) = &summary_args {
            args.extend([
                status.as_bytes(),
                run.as_bytes(),
                runtime.as_bytes(),
                pending.as_bytes(),
                wake.as_bytes(),
            ]);
        }
        let keys = [keys.head(), keys.log()];
        self.server.eval(&script::APPEND, &keys, &args).await
    }

    /// Removes index entries that became stale. A failure is harmless.
    async fn appended(
        &self,
        append: &Append,
        is_announced: bool,
        mut reply: Reply,
    ) -> Result<AppendOutcome> {
        let at = reply.time()?;
        let (ran_before, ran) = (reply.text()?, reply.text()?);
        let (woken_before, woken) = (reply.text()?, reply.text()?);
        let tag = if is_announced { index::tag(append) } else { String::new() };
        let stale = |before: String, now: &str, mine: &str| {
            let mut tags = vec![before, mine.to_owned()];
            tags.retain(|tag| !tag.is_empty() && tag != now);
            tags.dedup();
            tags
        };
        let summary = append.summary.as_ref();
        let ran_mine =
            if summary.is_some_and(|summary| summary.run.is_some()) { &*tag } else { "" };
        let woken_mine =
            if summary.is_some_and(|summary| summary.wake_at.is_some()) { &*tag } else { "" };
        for tag in stale(ran_before, &ran, ran_mine) {
            let _removed = self.remove_run_entry(&append.session, &tag).await;
        }
        for tag in stale(woken_before, &woken, woken_mine) {
            let _removed = self.remove_wake_entry(&append.session, &tag).await;
        }
        Ok(AppendOutcome::Appended { at })
    }

    /// Returns the outcome of an append whose expected position is within the base of a forked
    /// session.
    async fn outcome_in_base(&self, append: &Append, base: &str) -> Result<AppendOutcome> {
        let parts = head::base(&append.session, base)?;
        let expected = &append.expected;
        let reached = match parts.iter().find(|part| expected.version <= part.version) {
            Some(_) if expected.version == 0 => *expected == Position::start(),
            Some(part) => self.read_part(part, expected.version, 0).await?.before == *expected,
            None => false,
        };
        if !reached {
            return Ok(AppendOutcome::HistoryLost);
        }
        let next = self.read(&append.session, expected.version, 1).await?;
        match next.first() {
            Some(next) if next.id == append.id => Ok(AppendOutcome::Appended { at: next.at }),
            _ => self.conflict(append).await,
        }
    }

    async fn conflict(&self, append: &Append) -> Result<AppendOutcome> {
        let missed = self.read(&append.session, append.expected.version, u32::MAX).await?;
        Ok(AppendOutcome::Conflict { missed })
    }

    /// Renews a lease. Returns `None` if the session does not exist.
    pub(super) async fn renew(
        &self,
        session: &SessionId,
        run: &RunId,
        ttl: Duration,
    ) -> Result<Option<Renewal>> {
        if session.check().is_err() {
            return Ok(None);
        }
        let keys = [self.keys.of(session).head()];
        let (run, ttl) = (optional(Some(run.as_str())), milliseconds(ttl));
        let args = [run.as_bytes(), ttl.as_bytes()];
        let mut reply = self.server.eval(&script::RENEW, &keys, &args).await?;
        if reply.is_empty() {
            return Ok(None);
        }
        let renewed = reply.text()? == "1";
        let found = head::read(reply, session)?;
        Ok(found.map(|found| Renewal { renewed, head: found.head }))
    }
}

/// A summary as script arguments.
struct SummaryArgs<'a> {
    status: &'static str,
    run: String,
    runtime: &'a str,
    pending: String,
    wake: String,
}

impl<'a> SummaryArgs<'a> {
    fn of(summary: &'a Summary) -> Self {
        Self {
            status: summary.status.as_str(),
            run: optional(summary.run.as_ref().map(RunId::as_str)),
            runtime: &summary.runtime,
            pending: summary.pending.to_string(),
            wake: summary.wake_at.map_or_else(String::new, |at| at.0.to_string()),
        }
    }
}

/// Returns the stored form of an append's usage, which is empty if there is none.
fn usage_text(append: &Append) -> Result<String> {
    let text = append.usage.as_ref().map(|usage| serde_json::to_string(&**usage)).transpose();
    Ok(text.map_err(json)?.unwrap_or_default())
}

fn json(error: serde_json::Error) -> Error {
    Error::new(ErrorCode::Internal, "a head cannot be serialized as JSON").with_source(error)
}

fn lease(change: LeaseChange) -> (&'static str, String) {
    match change {
        LeaseChange::Keep => ("keep", String::new()),
        LeaseChange::Take(ttl) => ("take", milliseconds(ttl)),
        LeaseChange::Clear => ("clear", String::new()),
    }
}
