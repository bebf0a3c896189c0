//! What makes one runtime different from another.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::error::{Error, Result};
use helix_agents_core::event::Event;

use crate::context::LocalRunContext;
use crate::driver::Driver;
use crate::lease::LeaseKeeper;
use crate::live::LiveRun;
use crate::run_ref::RunRef;

/// How the runs of a runtime are carried out, once they are in the log.
#[async_trait]
pub trait Engine: Debug + Send + Sync + 'static {
    /// The kind of runtime, as it stands in logs: each takes over only runs of its own kind.
    fn kind(&self) -> &'static str;

    /// Whether the process that begins a run carries out all of it. If not, agents are found by their
    /// names, and hooks of one execution are refused: nobody else knows them.
    fn is_in_process(&self) -> bool {
        true
    }

    /// Has a run carried out that has just begun. Its shared part, if it is this process that carries
    /// it out; other runs are followed through the log.
    ///
    /// # Errors
    /// If nobody could be found who carries it out. Its lease is given up then.
    async fn drive(&self, begun: StartedRun) -> Result<Option<Arc<LiveRun>>>;

    /// Why nobody carries a run out any more that has not ended. None as long as somebody may: asked of
    /// runs of other processes, and without a lease.
    async fn stopped(&self, of: &RunRef) -> Option<Error>;

    /// Ends when the engine knows that nobody carries the run out any more; whoever waits looks into the
    /// log then. An engine that cannot tell never ends it.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    async fn ended(&self, _of: &RunRef) {
        std::future::pending().await
    }

    /// Whether the engine goes on by itself with a run whose lease has run out, so that sweeps leave it
    /// alone. It may take up one now that it was never handed, because whoever began it died.
    ///
    /// # Errors
    /// If that cannot be found out now.
    async fn goes_on(&self, _of: &RunRef) -> Result<bool> {
        Ok(false)
    }
}

/// A run that has just begun.
#[derive(Debug)]
pub struct StartedRun {
    /// What it is carried out with.
    pub driver: Box<Driver>,
    /// Its lease.
    pub lease: LeaseKeeper,
    /// The events with which it began.
    pub events: Vec<Event>,
    /// The run that it took over from, which had not ended. Whatever carries that out in vain can be
    /// stopped.
    pub over: Option<RunRef>,
    /// Whether a tool of this process started the run. The tool may wait for the run's end, so an engine that
    /// limits how many runs act at once must not let the run wait for the tool.
    pub in_tool: bool,
}

impl StartedRun {
    /// Leaves the run to be carried out in [context](crate::WorkItem), by this process or another one.
    #[must_use]
    pub fn in_parts(self) -> RunRef {
        let of = self.driver.of();
        if self.driver.runtime().engine().is_in_process() {
            let context = Arc::clone(self.driver.context());
            let here =
                LocalRunContext { agent: self.driver.agent, hooks: self.driver.inherited_hooks };
            context.local_runs().insert(of.run.clone(), here);
        }
        of
    }
}
