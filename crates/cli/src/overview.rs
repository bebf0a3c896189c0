//! The parts of a session's state that summaries show.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents::client::Status;
use helix_agents::id::{RunId, SessionId};
use helix_agents::session::SessionOverview;
use helix_agents::usage::UsageRollup;

/// The parts of a session's state that summaries show. At a server, the owner of the session can read them; the log needs
/// the role `admin`.
#[derive(Debug)]
pub(crate) struct Overview {
    pub(crate) session: SessionId,
    pub(crate) agent: Arc<str>,
    pub(crate) tags: BTreeMap<String, String>,
    /// The number of runs.
    pub(crate) runs: u32,
    /// The last run and the number of steps that it closed.
    pub(crate) last_run: Option<(RunId, u32)>,
    /// The number of steps that are no longer open.
    pub(crate) steps: u32,
    /// The usage of the session without its children.
    pub(crate) usage: UsageRollup,
}

impl Overview {
    /// Returns the number of steps that the last run closed, or 0 if another run has started since.
    pub(crate) fn steps_of(&self, run: &RunId) -> u32 {
        let last_run = self.last_run.as_ref();
        last_run.filter(|(last, _)| last == run).map_or(0, |(_, steps)| *steps)
    }

    /// Returns the models that the session has used, as their providers name them.
    pub(crate) fn models(&self) -> Option<String> {
        let names: Vec<_> = self.usage.models.names().map(|name| &**name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

impl From<&SessionOverview> for Overview {
    fn from(session: &SessionOverview) -> Self {
        let last_run = session.last_run();
        Self {
            session: session.id().clone(),
            agent: Arc::clone(session.agent()),
            tags: session.tags().clone(),
            runs: session.run_count(),
            last_run: last_run.map(|run| (run.id.clone(), run.steps)),
            steps: session.step_count(),
            usage: session.usage().clone(),
        }
    }
}

impl From<Status> for Overview {
    fn from(status: Status) -> Self {
        let Status { summary, last_run, runs, steps, own_usage: usage, .. } = status;
        Self {
            session: summary.session,
            agent: Arc::from(summary.agent),
            tags: summary.labels,
            runs,
            last_run: last_run.map(|run| (run.run, run.steps)),
            steps,
            usage,
        }
    }
}
