//! Creating, appending and renewing: one script, whatever the length of the log.

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

/// What came of beginning a session.
pub(super) enum Begun {
    Created(Timestamp),
    /// There is one: where its own log begins, and with which append.
    Exists {
        after: Position,
        first: AppendId,
        at: Timestamp,
    },
}

/// What a new session begins with.
#[derive(Default)]
pub(super) struct Beginning {
    pub(super) base: Vec<Part>,
    /// When the last append of the base was taken.
    pub(super) at: Timestamp,
}

/// A name that no other life of a session has.
pub(super) fn life() -> String {
    Uuid::now_v7().simple().to_string()
}

impl Inner {
    pub(super) async fn create_session(
        &self,
        new: &NewSession,
        first: &Append,
    ) -> Result<CreateOutcome> {
        Ok(match self.begin(new, first, &life(), &Beginning::default()).await? {
            Begun::Created(at) => CreateOutcome::Created { at },
            Begun::Exists { after, first: id, at } => {
                if after.version == 0 && id == first.id {
                    CreateOutcome::Created { at }
                } else {
                    CreateOutcome::Exists
                }
            }
        })
    }

    pub(super) async fn begin(
        &self,
        new: &NewSession,
        first: &Append,
        life: &str,
        beginning: &Beginning,
    ) -> Result<Begun> {
        let begun = loop {
            let at = self.list_life(new, &first.session, life, beginning.at).await?;
            self.announce(first).await?;
            if let Some(begun) = self.create(new, first, life, beginning, at).await? {
                break begun;
            }
        };
        // One whose time has passed long ago may have been taken for left over before the session was there.
        if let (Begun::Created(_), Some(Summary { wake_at: Some(_), .. })) =
            (&begun, &first.summary)
        {
            self.announce(first).await?;
        }
        // What was written for nothing. Failing to remove it does no harm.
        if let Begun::Exists { .. } = begun {
            let _removed = self.unlist_life(&new.root, &first.session, life).await;
        }
        Ok(begun)
    }

    /// `None` if the entries in indexes may be gone by now.
    async fn create(
        &self,
        new: &NewSession,
        first: &Append,
        life: &str,
        beginning: &Beginning,
        at: Timestamp,
    ) -> Result<Option<Begun>> {
        let message = "a session's first append needs a summary";
        let summary = first.summary.as_ref();
        let summary = summary.ok_or_else(|| Error::new(ErrorCode::InputInvalid, message))?;
        let tags = serde_json::to_string(&new.tags).map_err(json)?;
        let base = match &*beginning.base {
            [] => String::new(),
            parts => serde_json::to_string(parts).map_err(json)?,
        };
        let keys = self.keys.of(&first.session);
        let (lease, duration) = lease(first.lease);
        let told = Told::of(summary);
        let tag = index::tag(first);
        let version = first.expected.version.to_string();
        let run = optional(first.run.as_ref().map(RunId::as_str));
        let parent = optional(new.parent.as_ref().map(SessionId::as_str));
        let (schema, count, at) =
            (first.schema.to_string(), first.count.to_string(), at.0.to_string());
        let if_there = |told: &str| if told.is_empty() { "" } else { &*tag }.to_owned();
        let (ran, woken) = (if_there(&told.run), if_there(&told.wake));
        let usage = usage_text(first)?;
        let args: [&[u8]; 25] = [
            life.as_bytes(),
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
            told.status.as_bytes(),
            told.run.as_bytes(),
            told.runtime.as_bytes(),
            told.pending.as_bytes(),
            told.wake.as_bytes(),
            ran.as_bytes(),
            woken.as_bytes(),
            usage.as_bytes(),
        ];
        let keys = [keys.head(), keys.log()];
        let mut reply = self.server.eval(&script::CREATE, &keys, &args).await?;
        match &*reply.text()? {
            "created" => Ok(Some(Begun::Created(reply.time()?))),
            "late" => Ok(None),
            _ => {
                let (version, append) = (reply.number()?, AppendId::from(reply.text()?));
                let (first, at) = (AppendId::from(reply.text()?), reply.time()?);
                Ok(Some(Begun::Exists { after: Position { version, append }, first, at }))
            }
        }
    }

    pub(super) async fn append(&self, append: &Append) -> Result<AppendOutcome> {
        // Most appends tell nothing new of run and wake-up time; the script knows, and asks for the entries.
        let mut is_announced = false;
        loop {
            let mut reply = self.ask_to_append(append, is_announced).await?;
            let outcome = match &*reply.text()? {
                "index" => {
                    self.announce(append).await?;
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
                "shared" => self.judge_shared(append, &reply.text()?).await?,
                "lost" => AppendOutcome::HistoryLost,
                _ => return Err(not_found(&append.session)),
            };
            return Ok(outcome);
        }
    }

    async fn ask_to_append(&self, append: &Append, is_announced: bool) -> Result<Reply> {
        let keys = self.keys.of(&append.session);
        let version = append.expected.version.to_string();
        let run = optional(append.run.as_ref().map(RunId::as_str));
        let (schema, count) = (append.schema.to_string(), append.count.to_string());
        let (lease, duration) = lease(append.lease);
        let (guard, time) = match append.guard {
            Guard::None => ("", String::new()),
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
        let told = append.summary.as_ref().map(Told::of);
        if let Some(Told { status, run, runtime, pending, wake }) = &told {
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

    /// Removes the entries of indexes that became stale. Failing to does no harm.
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
            tags.retain(|it| !it.is_empty() && it != now);
            tags.dedup();
            tags
        };
        let summary = append.summary.as_ref();
        let ran_mine = if summary.is_some_and(|it| it.run.is_some()) { &*tag } else { "" };
        let woken_mine = if summary.is_some_and(|it| it.wake_at.is_some()) { &*tag } else { "" };
        for tag in stale(ran_before, &ran, ran_mine) {
            let _removed = self.withdraw_run(&append.session, &tag).await;
        }
        for tag in stale(woken_before, &woken, woken_mine) {
            let _removed = self.withdraw_wake(&append.session, &tag).await;
        }
        Ok(AppendOutcome::Appended { at })
    }

    /// What an append gets whose position is in what the session was forked from.
    async fn judge_shared(&self, append: &Append, base: &str) -> Result<AppendOutcome> {
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

    /// None if there is no such session.
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
        Ok(found.map(|it| Renewal { renewed, head: it.head }))
    }
}

/// A summary as scripts take it.
struct Told<'a> {
    status: &'static str,
    run: String,
    runtime: &'a str,
    pending: String,
    wake: String,
}

impl<'a> Told<'a> {
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

/// What an append says of its session's usage, as it is kept; empty if it says nothing.
fn usage_text(append: &Append) -> Result<String> {
    let text = append.usage.as_ref().map(|usage| serde_json::to_string(&**usage)).transpose();
    Ok(text.map_err(json)?.unwrap_or_default())
}

fn json(error: serde_json::Error) -> Error {
    Error::new(ErrorCode::Internal, "a head cannot be written as JSON").with_source(error)
}

fn lease(change: LeaseChange) -> (&'static str, String) {
    match change {
        LeaseChange::Keep => ("keep", String::new()),
        LeaseChange::Take(ttl) => ("take", milliseconds(ttl)),
        LeaseChange::Clear => ("clear", String::new()),
    }
}
