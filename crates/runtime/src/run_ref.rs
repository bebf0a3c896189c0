//! [`RunRef`]: a reference to a run, and the workflow id derived from it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::{RunRecord, Session, SessionOverview};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

#[cfg(test)]
mod tests;

/// The separator between the parts of a workflow id.
const SEPARATOR: &str = "__";

/// The maximum length of a name that is used verbatim in a workflow id.
const MAX_PART: usize = 120;

/// A reference to one run of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunRef {
    /// The session of the run.
    pub session: SessionId,
    /// The id of the run.
    pub run: RunId,
    /// The name of the session's agent.
    pub agent: Arc<str>,
    /// The number of earlier runs of the session.
    pub number: u32,
}

impl RunRef {
    /// Creates a reference to a run of a session.
    #[must_use]
    pub fn new(session: &Session, run: &RunRecord) -> Self {
        Self::named(session, &run.id)
    }

    /// Returns a reference to the last run of a session, if it has one.
    #[must_use]
    pub fn last(session: &SessionOverview) -> Option<Self> {
        let run = session.last_run()?.id.clone();
        let (session, agent, number) =
            (session.id().clone(), Arc::clone(session.agent()), session.past_runs());
        Some(Self { session, run, agent, number })
    }

    /// Returns a reference to the run with this id. If the session has no such run, it is numbered as the next run.
    pub(crate) fn named(session: &Session, run: &RunId) -> Self {
        let before = session.runs().take_while(|other| other.id != *run).count();
        Self {
            session: session.id().clone(),
            run: run.clone(),
            agent: Arc::clone(session.agent()),
            number: u32::try_from(before).unwrap_or(u32::MAX),
        }
    }

    /// Returns the id of the workflow that executes the run: `{prefix}__{agent}__{session}`, followed by
    /// `__resume-{number}` for all but the session's first run. All processes derive the same id for a run, so that
    /// an engine detects a second start of its workflow. An agent or session name that is too long or would make the
    /// id ambiguous is replaced by a digest. An id occurs again only if a session is deleted and created anew.
    #[must_use]
    pub fn workflow_id(&self, prefix: &str) -> String {
        let (agent, session) = (id_part(&self.agent), id_part(self.session.as_str()));
        let mut id = format!("{prefix}{SEPARATOR}{agent}{SEPARATOR}{session}");
        if self.number > 0 {
            // Writing to a string does not fail.
            let _ = write!(id, "{SEPARATOR}resume-{}", self.number);
        }
        id
    }
}

/// Returns a name as a part of an id: verbatim, or as a digest if it is too long or ambiguous.
fn id_part(name: &str) -> Cow<'_, str> {
    let is_allowed =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '@');
    let is_plain = !name.is_empty()
        && name.len() <= MAX_PART
        && name.chars().all(is_allowed)
        && !name.contains(SEPARATOR)
        && !name.starts_with('_')
        && !name.ends_with('_');
    if is_plain {
        return Cow::Borrowed(name);
    }
    // `~` does not occur in verbatim names.
    let mut text = String::from("~");
    for byte in Sha256::digest(name).iter().take(16) {
        let _ = write!(text, "{byte:02x}");
    }
    Cow::Owned(text)
}
