//! Heads as scripts answer them.

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

/// A head, with what only the store knows of the session.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) head: Head,
    /// Tells a session from an earlier one of the same id.
    pub(super) life: String,
    /// What comes before the session's own log.
    pub(super) base: Vec<Part>,
    /// Which entries of indexes tell of its run and of its time to wake up.
    pub(super) ran: String,
    pub(super) woken: String,
    /// The usage of the session, if it was asked for and an append has said any.
    pub(super) usage: Option<Arc<UsageRollup>>,
}

/// The beginning of somebody's log, which others share: it never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    #[serde(rename = "s")]
    pub(super) session: SessionId,
    #[serde(rename = "l")]
    pub(super) life: String,
    /// Up to which position it is shared.
    #[serde(rename = "v")]
    pub(super) version: u64,
    #[serde(rename = "a")]
    pub(super) append: AppendId,
}

/// The parts of a base, from their form in a head.
pub(super) fn base(session: &SessionId, text: &str) -> Result<Vec<Part>> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let parts = serde_json::from_str(text);
    parts.map_err(|_| corrupt(session, "what a session was forked from cannot be read"))
}

/// How long a millisecond count of a duration may be, so that scripts can count to it.
pub(super) fn milliseconds(duration: std::time::Duration) -> String {
    const LONGEST: u64 = 1 << 52;
    u64::try_from(duration.as_millis()).unwrap_or(LONGEST).min(LONGEST).to_string()
}

impl Inner {
    /// The head of a session, if it exists.
    pub(crate) async fn find(&self, session: &SessionId) -> Result<Option<Found>> {
        self.find_by(&script::HEAD, session).await
    }

    /// The same by this script, which may answer more of it.
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

/// Reads the rest of an answer as a head; none if nothing is left of it.
pub(super) fn read(mut reply: Reply, session: &SessionId) -> Result<Option<Found>> {
    if reply.is_empty() {
        return Ok(None);
    }
    let now = reply.time()?;
    let stored = SessionId::from(reply.text()?);
    if stored != *session {
        return Err(corrupt(session, "the key of the session holds another one"));
    }
    let (agent, root) = (reply.text()?, reply.text()?);
    let parent = reply.text_or_none()?.map(SessionId::from);
    let tags = serde_json::from_str(&reply.text()?)
        .map_err(|_| corrupt(session, "the tags of the session cannot be read"))?;
    let created_at = reply.time()?;
    let life = reply.text()?;
    let base = base(session, &reply.text()?)?;
    let position = Position { version: reply.number()?, append: AppendId::from(reply.text()?) };
    let updated_at = reply.time()?;
    let lease_until = reply.time_or_none()?;
    let status = SessionStatus::parse(&reply.text()?);
    let summary = Summary {
        status: status.ok_or_else(|| corrupt(session, "the session's status is not known"))?,
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
    // Only the script that was asked for it answers it.
    let usage = if reply.is_empty() { String::new() } else { reply.text()? };
    let usage = Some(usage).filter(|text| !text.is_empty());
    let usage = usage.map(|text| serde_json::from_str(&text)).transpose();
    let usage = usage.map_err(|_| corrupt(session, "the usage of the session cannot be read"))?;
    Ok(Some(Found { head, life, base, ran, woken, usage }))
}
