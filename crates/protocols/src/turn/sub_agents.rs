//! The sub-agents of a turn.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::Attempt;

/// The maximum length in bytes of the text that is shown of a sub-agent. The beginning of a longer text is omitted.
const MAX_SUB_AGENT_TEXT: usize = 4 * 1024;

/// The time in milliseconds between two updates of a sub-agent's text.
const UPDATE_INTERVAL: i64 = 250;

/// A sub-agent as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubAgent {
    /// The session of the sub-agent.
    pub session: SessionId,
    /// The session that started it.
    pub parent: SessionId,
    /// The name of the sub-agent.
    pub name: Arc<str>,
    /// The reference of the call that started it.
    pub call: String,
    /// Whether it is a companion, which may work after the call has its result.
    pub is_companion: bool,
    /// The status of the sub-agent.
    pub status: SubAgentStatus,
    /// The reply that the sub-agent writes at the moment. Empty once the reply is recorded: the result of the sub-agent
    /// is that of its call.
    pub text: String,
}

/// The status of a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubAgentStatus {
    /// It works.
    Running,
    /// It waits for an answer or for sub-agents of its own, or it was stopped and can be resumed.
    Suspended,
    /// It has completed its work.
    Completed,
    /// It failed or was aborted.
    Failed,
}

impl SubAgentStatus {
    /// Returns the name that the protocols use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// Returns `true` if the sub-agent will not do any more work for its call.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// A sub-agent and the updates of it that were shown.
#[derive(Debug)]
struct Tracked {
    sub_agent: SubAgent,
    /// The attempt that wrote the text.
    attempt: Option<Attempt>,
    /// The time of the last update.
    updated: Timestamp,
    /// Whether the text has changed since the last update.
    is_stale: bool,
}

/// All sub-agents of a turn.
#[derive(Debug, Default)]
pub(super) struct SubAgents {
    by_session: BTreeMap<SessionId, Tracked>,
    /// The sub-agents that have not ended, without companions, by the references of the calls that wait for them.
    awaited: BTreeMap<String, SessionId>,
    /// The sub-agents of all calls that have one, without companions.
    by_call: BTreeMap<String, SessionId>,
    /// The open attempts that wrote the texts.
    writers: BTreeMap<Attempt, SessionId>,
}

impl SubAgents {
    /// Adds a sub-agent, or restarts one that was shown before. Returns `None` if nothing changed.
    pub(super) fn start(&mut self, sub_agent: SubAgent, at: Timestamp) -> Option<&SubAgent> {
        let known = self.by_session.get(&sub_agent.session);
        if known.is_some_and(|known| known.sub_agent == sub_agent) {
            return None;
        }
        index(&mut self.awaited, &sub_agent);
        if !sub_agent.is_companion {
            self.by_call.insert(sub_agent.call.clone(), sub_agent.session.clone());
        }
        let session = sub_agent.session.clone();
        let tracked = Tracked { sub_agent, attempt: None, updated: at, is_stale: false };
        let entry = self.by_session.entry(session);
        let tracked = entry.insert_entry(tracked).into_mut();
        Some(&tracked.sub_agent)
    }

    /// Adds text. Returns the sub-agent if an update is due.
    pub(super) fn add_text(
        &mut self,
        session: &SessionId,
        attempt: Option<Attempt>,
        delta: &str,
        at: Timestamp,
    ) -> Option<&SubAgent> {
        let tracked = self.by_session.get_mut(session)?;
        if tracked.attempt != attempt {
            tracked.attempt = attempt;
            tracked.sub_agent.text.clear();
            self.writers.extend(attempt.map(|attempt| (attempt, session.clone())));
        }
        let text = &mut tracked.sub_agent.text;
        text.push_str(delta);
        if text.len() > MAX_SUB_AGENT_TEXT {
            let cut = text.ceil_char_boundary(text.len() - MAX_SUB_AGENT_TEXT);
            text.drain(..cut);
        }
        tracked.is_stale = true;
        (at.0.saturating_sub(tracked.updated.0) >= UPDATE_INTERVAL).then(|| tracked.update(at))
    }

    /// Removes the text of a sub-agent, because its reply is recorded. Returns the sub-agent if it had text.
    pub(super) fn end_text(&mut self, session: &SessionId, at: Timestamp) -> Option<&SubAgent> {
        let tracked = self.by_session.get_mut(session)?;
        let had_text = tracked.clear_text();
        had_text.then(|| tracked.update(at))
    }

    /// Forgets an attempt, because its outcome is recorded.
    pub(super) fn settle(&mut self, attempt: Attempt) {
        self.writers.remove(&attempt);
    }

    /// Removes the text that a discarded attempt wrote.
    pub(super) fn discard(&mut self, attempt: Attempt, at: Timestamp) -> Option<&SubAgent> {
        let session = self.writers.remove(&attempt)?;
        let tracked = self.by_session.get_mut(&session);
        let tracked = tracked.filter(|tracked| tracked.attempt == Some(attempt))?;
        tracked.attempt = None;
        let had_text = tracked.clear_text();
        had_text.then(|| tracked.update(at))
    }

    /// Sets the status of a sub-agent. Returns the sub-agent if its status has changed.
    pub(super) fn set_status(
        &mut self,
        session: &SessionId,
        status: SubAgentStatus,
        at: Timestamp,
    ) -> Option<&SubAgent> {
        let tracked = self.by_session.get_mut(session)?;
        let had_text = status != SubAgentStatus::Running && tracked.clear_text();
        let is_new = tracked.sub_agent.status != status;
        tracked.sub_agent.status = status;
        index(&mut self.awaited, &tracked.sub_agent);
        (is_new || had_text).then(|| tracked.update(at))
    }

    /// Returns the session of the sub-agent that a call waits or waited for.
    pub(super) fn of_call(&self, call: &str) -> Option<SessionId> {
        self.by_call.get(call).cloned()
    }

    /// Returns the sessions of the sub-agents that have not ended, without companions.
    pub(super) fn open(&self) -> Vec<SessionId> {
        self.awaited.values().cloned().collect()
    }

    /// Returns `true` if the text of a sub-agent has changed since its last update.
    pub(super) fn has_stale(&self) -> bool {
        self.by_session.values().any(|tracked| tracked.is_stale)
    }

    /// Does the same as [`flush`](Self::flush) when no chunk has arrived for the interval of updates.
    pub(super) fn flush_idle(&mut self, mut show: impl FnMut(&SubAgent)) {
        for tracked in self.by_session.values_mut().filter(|tracked| tracked.is_stale) {
            let at = Timestamp(tracked.updated.0.saturating_add(UPDATE_INTERVAL));
            show(tracked.update(at));
        }
    }

    /// Calls `show` with the sub-agents whose text has changed since their last update.
    pub(super) fn flush(&mut self, at: Timestamp, mut show: impl FnMut(&SubAgent)) {
        for tracked in self.by_session.values_mut().filter(|tracked| tracked.is_stale) {
            show(tracked.update(at));
        }
    }
}

/// Adds a sub-agent to the index of those that calls wait for, or removes it once it has ended.
fn index(awaited: &mut BTreeMap<String, SessionId>, sub_agent: &SubAgent) {
    let SubAgent { session, call, status, is_companion, .. } = sub_agent;
    if !is_companion && !status.is_final() {
        awaited.insert(call.clone(), session.clone());
    } else if awaited.get(call) == Some(session) {
        awaited.remove(call);
    }
}

impl Tracked {
    fn clear_text(&mut self) -> bool {
        let had_text = !self.sub_agent.text.is_empty();
        self.sub_agent.text.clear();
        had_text
    }

    fn update(&mut self, at: Timestamp) -> &SubAgent {
        (self.updated, self.is_stale) = (at, false);
        &self.sub_agent
    }
}
