//! Which run it is, and what an engine calls its workflow.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::{RunRecord, Session, SessionOverview};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

#[cfg(test)]
mod tests;

/// What stands between the parts of a workflow's id.
const BETWEEN: &str = "__";

/// The longest part that stands for itself.
const MAX_PART: usize = 120;

/// Which run it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunRef {
    /// Its session.
    pub session: SessionId,
    /// The run.
    pub run: RunId,
    /// The session's agent.
    pub agent: Arc<str>,
    /// How many runs of the session came before it.
    pub number: u32,
}

impl RunRef {
    /// A run of a session.
    #[must_use]
    pub fn new(session: &Session, run: &RunRecord) -> Self {
        Self::named(session, &run.id)
    }

    /// The last run of a session.
    #[must_use]
    pub fn last(session: &SessionOverview) -> Option<Self> {
        let run = session.last_run()?.id.clone();
        let (session, agent, number) =
            (session.id().clone(), Arc::clone(session.agent()), session.past_runs());
        Some(Self { session, run, agent, number })
    }

    /// The run of that id, or the next one if the session has none of it yet.
    pub(crate) fn named(session: &Session, run: &RunId) -> Self {
        let before = session.runs().take_while(|it| it.id != *run).count();
        Self {
            session: session.id().clone(),
            run: run.clone(),
            agent: Arc::clone(session.agent()),
            number: u32::try_from(before).unwrap_or(u32::MAX),
        }
    }

    /// The id of the workflow that carries it out: `{prefix}__{agent}__{session}`, and for all but the
    /// session's first run `__resume-{number}` after it. It follows from the log, so whoever begins a
    /// workflow twice finds that out; and no two runs have the same, for an agent or a session whose name
    /// could be taken for more than a part of it is called by a digest.
    #[must_use]
    pub fn workflow_id(&self, prefix: &str) -> String {
        let (agent, session) = (part(&self.agent), part(self.session.as_str()));
        let mut id = format!("{prefix}{BETWEEN}{agent}{BETWEEN}{session}");
        if self.number > 0 {
            // Writing to a string does not fail.
            let _ = write!(id, "{BETWEEN}resume-{}", self.number);
        }
        id
    }
}

/// A name as part of an id: itself, or a digest if it is long or could be taken for something else.
fn part(name: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '@');
    let stands_alone = !name.is_empty()
        && name.len() <= MAX_PART
        && name.chars().all(plain)
        && !name.contains(BETWEEN)
        && !name.starts_with('_')
        && !name.ends_with('_');
    if stands_alone {
        return Cow::Borrowed(name);
    }
    // `~` stands in no plain one.
    let mut text = String::from("~");
    for byte in Sha256::digest(name).iter().take(16) {
        let _ = write!(text, "{byte:02x}");
    }
    Cow::Owned(text)
}
