//! Random trees of agents with random crashes, answers and requests, and the invariants that hold afterwards.
//!
//! A [`Story`] is one simulation run, determined by its seed: the agents, the replies of their models, the
//! actions of users, and the crashes of processes. [`Story::run`] simulates all processes in one process, on
//! a clock that may be paused. [`Story::live`] runs one real process, for tests that kill real processes, and
//! [`Story::check`] checks the invariants after the last of them.

mod check;
mod hooks;
mod life;
mod many;
mod model;
mod notes;
mod plan;
mod settle;
mod story;
mod users;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::clock::IdSource;
use helix_agents_core::error::Result;
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::session::Durability;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;

pub use check::{Expected, Observations, check};
pub use hooks::{Hook, HookCall};
pub use life::{Counted, Pace, ProcessLife, RunProcesses};
pub use many::{Fresh, run_all};
pub use model::TreeLlm;
pub use notes::{Execution, Records};
pub use plan::{Family, Node, Scene};
pub use settle::{free_leases, heads};
pub use story::{Stats, Story};
pub use users::{AcceptedAnswer, Answers, is_expected};

/// The id of the root session of every tree.
const ROOT: &str = "root";

/// The stores of logs and streams.
#[derive(Debug, Clone)]
pub struct Stores {
    /// The session store.
    pub state: Arc<dyn StateStore>,
    /// The stream manager.
    pub streams: Arc<dyn StreamManager>,
}

/// A function that opens the stores for a process. Each process has connections of its own, which are unused
/// after it has crashed.
pub type Open = dyn Fn() -> BoxFuture<'static, Stores> + Sync;

/// The parts of one process.
#[derive(Debug, Clone)]
pub struct Process {
    /// The session store of the process.
    pub store: Arc<dyn StateStore>,
    /// The stream manager of the process.
    pub streams: Arc<dyn StreamManager>,
    /// The model of the process.
    pub llm: Arc<dyn LlmAdapter>,
    /// The agents by name.
    pub registry: AgentRegistry,
    /// An id source that gives the same ids in each execution of the story. `None` for real processes.
    pub ids: Option<Arc<dyn IdSource>>,
    /// The durability, which determines when events are appended.
    pub durability: Durability,
}

/// Continues all runs that no process works on although one should.
pub type Sweep = Arc<dyn Fn() -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// A function that starts a process.
pub type Boot = dyn Fn(Process) -> BoxFuture<'static, Booted> + Sync;

/// A running process.
#[derive(Clone)]
pub struct Booted {
    /// The executor of the process.
    pub executor: Arc<dyn AgentExecutor>,
    /// The sweeper of the process.
    pub sweep: Sweep,
    /// Whether its engine repeats work items.
    pub redelivery: Redelivery,
    /// The time after which its engine notices a crashed process. Nothing may make progress for that long.
    pub misses: Duration,
}

/// Whether an engine may execute a work item more than once while its process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Redelivery {
    /// It executes each work item once.
    #[default]
    Never,
    /// The engine repeats a work item whose reply was lost: hooks may be called again.
    Later,
    /// The engine repeats a work item that was dropped during execution: effects that are not in the log are
    /// executed again, as their classes allow.
    Dropped,
    /// The engine takes a live process for crashed and repeats its work item: effects may be executed twice
    /// concurrently, as their classes allow. The stream and hook calls of the two may be incomplete or
    /// duplicated.
    AtOnce,
}

impl fmt::Debug for Booted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.executor.fmt(f)
    }
}
