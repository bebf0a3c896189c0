//! Heads in the replies of scripts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use helix_agents_core::error::Result;
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{Head, NewSession, Position, SessionStatus, Summary};
use helix_agents_core::usage::UsageRollup;

use crate::error::corrupt;
use crate::reply::Reply;
use crate::script::Script;
use crate::{Inner, script};

/// A head and the store's own data of the session.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) head: Head,
    /// The generation of the session: a unique id that distinguishes it from earlier sessions with the
    /// same session id.
    pub(super) generation: String,
    /// The parts of other logs that precede the session's own log.
    pub(super) base: Vec<Part>,
    /// The tags of the index entries for the session's run and wake time.
    pub(super) ran: String,
    pub(super) woken: String,
    /// The usage of the session, if the script returned it and any append had usage.
    pub(super) usage: Option<Arc<UsageRollup>>,
}

/// The beginning of another log that this one shares. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    #[serde(rename = "s")]
    pub(super) session: SessionId,
    #[serde(rename = "l")]
    pub(super) generation: String,
    /// The position up to which it is shared.
    #[serde(rename = "v")]
    pub(super) version: u64,
    #[serde(rename = "a")]
    pub(super) append: AppendId,
}

/// Parses the base of a head.
pub(super) fn base(session: &SessionId, text: &str) -> Result<Vec<Part>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let parts = serde_json::from_str(text);
    parts.map_err(|_| corrupt(session, "the base of a forked session is unreadable"))
}

/// Formats a duration in milliseconds, limited to a number that scripts can add without loss.
pub(super) fn milliseconds(duration: std::time::Duration) -> String {
    const LONGEST: u64 = 1 << 52;
    u64::try_from(duration.as_millis()).unwrap_or(LONGEST).min(LONGEST).to_string()
}

impl Inner {
    /// Returns the head of a session, if the session exists.
    pub(crate) async fn find(&self, session: &SessionId) -> Result<Option<Found>> {
        self.find_by(&script::HEAD, session).await
    }

    /// Returns the head of a session with the given script, which may return additional fields.
    pub(super) async fn find_by(
        &self,
        script: &'static Script,
        session: &SessionId,
    ) -> Result<Option<Found>> {
        let keys = [self.keys.of(session).head()];
        let reply = self.server.eval(script, &keys, &[]).await?;
        read(reply, session)
    }
}

/// Reads the rest of a reply as a head. Returns `None` if the rest is empty.
pub(super) fn read(mut reply: Reply, session: &SessionId) -> Result<Option<Found>> {
    if reply.is_empty() {
        return Ok(None);
    }
    let now = reply.time()?;
    let stored = SessionId::from(reply.text()?);
    if stored != *session {
        return Err(corrupt(session, "the key of the session contains another session"));
    }
    let (agent, root) = (reply.text()?, reply.text()?);
    let parent = reply.text_or_none()?.map(SessionId::from);
    let tags = serde_json::from_str(&reply.text()?)
        .map_err(|_| corrupt(session, "the tags of the session are unreadable"))?;
    let created_at = reply.time()?;
    let generation = reply.text()?;
    let base = base(session, &reply.text()?)?;
    let position = Position { version: reply.number()?, append: AppendId::from(reply.text()?) };
    let updated_at = reply.time()?;
    let lease_until = reply.time_or_none()?;
    let status = SessionStatus::parse(&reply.text()?);
    let summary = Summary {
        status: status.ok_or_else(|| corrupt(session, "the session has an unknown status"))?,
        run: reply.text_or_none()?.map(RunId::from),
        runtime: reply.text()?.into(),
        pending: reply.number()?,
        wake_at: reply.time_or_none()?,
    };
    let (ran, woken) = (reply.text()?, reply.text()?);
    let created = NewSession { agent: agent.into(), root: SessionId::from(root), parent, tags };
    let head = Head {
        session: stored,
        created,
        position,
        summary,
        lease_until,
        created_at,
        updated_at,
        read_at: now.max(updated_at),
    };
    // Only one of the scripts returns the usage.
    let usage = if reply.is_empty() { String::new() } else { reply.text()? };
    let usage = Some(usage).filter(|text| !text.is_empty());
    let usage = usage.map(|text| serde_json::from_str(&text)).transpose();
    let usage = usage.map_err(|_| corrupt(session, "the usage of the session is unreadable"))?;
    Ok(Some(Found { head, generation, base, ran, woken, usage }))
}
