//! The workflow of a run: its type, and what goes into it and comes out.

use std::time::Duration;

use helix_agents_runtime::{Next, RunRef, WorkItem};
use serde::{Deserialize, Serialize};
use temporalio_macros::{workflow, workflow_methods};
use temporalio_sdk::{WorkflowContext, WorkflowResult};

use crate::step_site;

/// What a workflow begins with, or goes on with in a new history.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunInput {
    /// The run.
    pub of: RunRef,
    /// By what it is carried out.
    pub terms: RunLimits,
    /// Where the workflow ids of this deployment begin; children have it too.
    pub prefix: String,
    /// Whether somebody may have been at it before, whom this workflow knows nothing of.
    #[serde(default)]
    pub recovered: bool,
    /// Where the history before this one ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
}

/// Where a history ended that another one goes on from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Left {
    pub next: Next,
    /// The step that was reached.
    pub step: u32,
    /// How many parts were done, in all histories so far.
    pub context: u64,
}

/// By what a run is carried out. They are those of whoever began it, whatever its workers were told: what a
/// workflow does has to follow from its history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunLimits {
    /// After how long without a heartbeat a worker counts as dead.
    pub heartbeat_ms: u64,
    /// How often a part is tried.
    pub attempts: u32,
    /// After how many parts a new history begins, at the latest.
    pub parts_per_history: u32,
    /// How long a child is waited for at a time: while that lasts, it takes the place of other work.
    pub follow_ms: u64,
    /// After how long a workflow is over, whatever it does; none for as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_ms: Option<u64>,
}

impl RunLimits {
    pub(crate) fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.heartbeat_ms)
    }

    pub(crate) fn execution(&self) -> Option<Duration> {
        self.execution_ms.map(Duration::from_millis)
    }
}

/// What a workflow comes to: for people who look at it, since the log has the rest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunOutput {
    /// What became of the session.
    pub status: String,
    /// How many parts it took.
    pub context: u64,
}

/// A part to carry out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PerformInput {
    pub of: RunRef,
    pub part: WorkItem,
    /// Whether nobody has begun it before, as far as the workflow knows.
    pub is_first: bool,
}

/// What came of a part.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Performed {
    pub next: Next,
    /// Runs of children that began in it, whose workflows are to be started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<RunRef>,
    /// What became of the session, once nothing is next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// The workflow of a run.
#[workflow]
#[derive(Debug, Default)]
pub(crate) struct AgentRun;

#[workflow_methods]
impl AgentRun {
    /// Carries the run out, part by part.
    #[run(name = "helix-agent-run")]
    pub(crate) async fn run(
        cx: &mut WorkflowContext<Self>,
        input: RunInput,
    ) -> WorkflowResult<RunOutput> {
        step_site::drive(cx, input).await
    }
}
