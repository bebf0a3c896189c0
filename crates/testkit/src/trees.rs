//! Random trees of agents under random deaths, answers and requests, and what must hold of them
//! afterwards.
//!
//! A [`Story`] is told by its seed: the agents, what their models answer, what people do, when
//! processes die. [`Story::tell`] tells it in one process, on a clock that may be paused, with
//! processes that are only played; [`Story::live`] is one real process of it, for tests that kill
//! real ones, and [`Story::check`] what must hold after the last of them.

mod check;
mod dice;
mod hooks;
mod life;
mod many;
mod model;
mod notes;
mod people;
mod plan;
mod settle;
mod story;

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

pub use check::{Expected, Noted, check};
pub use dice::Dice;
pub use hooks::{Hook, Told};
pub use life::{Counted, Life, Lives, Pace};
pub use many::{Fresh, tell_all};
pub use model::TreeLlm;
pub use notes::{Execution, Notes};
pub use people::{Answers, Taken, is_expected};
pub use plan::{Family, Node, Scene};
pub use settle::{free_leases, heads};
pub use story::{Story, Tally};

/// The session at the top of every tree.
const ROOT: &str = "root";

/// Where logs and streams are kept.
#[derive(Debug, Clone)]
pub struct Stores {
    /// The logs.
    pub state: Arc<dyn StateStore>,
    /// The streams.
    pub streams: Arc<dyn StreamManager>,
}

/// How a process gets at its stores: each has connections of its own, which nobody uses any more
/// when it is dead.
pub type Open = dyn Fn() -> BoxFuture<'static, Stores> + Sync;

/// What one process is made of.
#[derive(Debug, Clone)]
pub struct Process {
    /// Where logs are kept.
    pub store: Arc<dyn StateStore>,
    /// Where streams are kept.
    pub streams: Arc<dyn StreamManager>,
    /// The model.
    pub llm: Arc<dyn LlmAdapter>,
    /// Agents by name.
    pub registry: AgentRegistry,
    /// Ids that are the same each time the story is told; none where processes are real.
    pub ids: Option<Arc<dyn IdSource>>,
    /// When facts are appended.
    pub durability: Durability,
}

/// Goes on with whatever nobody works on and somebody should.
pub type Sweep = Arc<dyn Fn() -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// How a process is begun.
pub type Boot = dyn Fn(Process) -> BoxFuture<'static, Booted> + Sync;

/// A process that runs.
#[derive(Clone)]
pub struct Booted {
    /// Its executor.
    pub executor: Arc<dyn AgentExecutor>,
    /// Its sweeper.
    pub sweep: Sweep,
    /// Whether its engine does what was done.
    pub again: Again,
    /// After how long its engine misses a process that died: so long nothing may move.
    pub misses: Duration,
}

/// Whether an engine has a part of a run carried out more than once while its process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Again {
    /// It does not.
    #[default]
    Never,
    /// When its answer was lost: hooks may be told again.
    Later,
    /// When it was dropped in the middle: effects that did not get into the log run again, as their classes allow.
    Dropped,
    /// When somebody was taken for dead who was not: effects may run twice, too, as their classes allow, and
    /// of what two show and tell neither may be right.
    AtOnce,
}

impl fmt::Debug for Booted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.executor.fmt(f)
    }
}
