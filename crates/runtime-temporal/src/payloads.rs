//! The inputs and outputs of the workflow and of its activities. The server stores them in workflow histories, so later
//! versions must be able to deserialize them.

use std::time::Duration;

use helix_agents_core::id::CallId;
use helix_agents_runtime::{NextWork, RunRef, WorkItem};
use serde::{Deserialize, Serialize};

/// The input of a workflow, for its start or its continuation in a new history.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunInput {
    /// The run to execute.
    #[serde(rename = "of")]
    pub run_ref: RunRef,
    /// The execution limits of the run.
    #[serde(rename = "terms")]
    pub limits: RunLimits,
    /// The prefix of workflow ids, which children inherit.
    pub prefix: String,
    /// `true` if an earlier workflow of this run, which the server no longer knows, may have executed part of the run.
    #[serde(default)]
    pub recovered: bool,
    /// The state at the end of the previous history.
    #[serde(default, rename = "left", skip_serializing_if = "Option::is_none")]
    pub continued_from: Option<Continuation>,
}

/// The state at the end of a history, from which the next one continues.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Continuation {
    /// The next work.
    pub next: NextWork,
    /// The current step of the run.
    pub step: u32,
    /// The number of executed work items, concurrent calls and waits for children in all previous histories.
    #[serde(rename = "parts")]
    pub work_items: u64,
}

/// The execution limits of a run, fixed when the run starts. Workers use these instead of their own configuration, so
/// that replays stay deterministic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunLimits {
    /// The heartbeat timeout, after which a worker counts as crashed.
    pub heartbeat_ms: u64,
    /// The maximum number of attempts of a work item.
    pub attempts: u32,
    /// The maximum number of work items in a history.
    #[serde(rename = "parts_per_history")]
    pub work_items_per_history: u32,
    /// The maximum time that one activity waits for a child. The wait occupies a worker slot.
    pub follow_ms: u64,
    /// The execution timeout of the workflow. `None`: no timeout.
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

/// The output of a workflow, for inspection only. The data is in the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RunOutput {
    /// The final status of the session.
    pub status: String,
    /// The number of executed work items, concurrent calls and waits for children.
    #[serde(rename = "parts")]
    pub work_items: u64,
}

/// The input of the `perform` activity.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PerformInput {
    #[serde(rename = "of")]
    pub run_ref: RunRef,
    #[serde(rename = "part")]
    pub item: WorkItem,
    /// `true` if no worker has started the item before, as far as the workflow knows.
    pub is_first: bool,
}

/// The output of the `perform` activity.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PerformOutput {
    /// The next work.
    pub next: NextWork,
    /// The child runs started by the item, whose workflows have to be started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<RunRef>,
    /// The final status of the session, once there is no more work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// The input of the `call` activity: one of several concurrent calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CallInput {
    #[serde(rename = "of")]
    pub run_ref: RunRef,
    pub call: CallId,
}

/// The input of the `follow` activity: a child to wait for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FollowInput {
    #[serde(rename = "of")]
    pub run_ref: RunRef,
    pub call: CallId,
    pub limit_ms: u64,
}
