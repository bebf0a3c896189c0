//! The backend-specific part of a runtime.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::error::{Error, Result};
use helix_agents_core::event::Event;

use crate::context::LocalRunContext;
use crate::driver::Driver;
use crate::lease_keeper::LeaseKeeper;
use crate::live::LiveRun;
use crate::run_ref::RunRef;

/// Executes the runs of a runtime after they have been recorded in the log.
#[async_trait]
pub trait Engine: Debug + Send + Sync + 'static {
    /// Returns the kind of runtime that is recorded in logs. It must be unique, and must never change. `recover` and
    /// `sweep` take over only runs of this kind. `resume` accepts sessions of any kind.
    fn kind(&self) -> &'static str;

    /// Returns `true` if the process that starts a run also executes all of it. Otherwise agents are looked
    /// up by name, and hooks of a single run are rejected because other processes do not know them.
    fn is_in_process(&self) -> bool {
        true
    }

    /// Starts the execution of a run that has just been recorded. Returns the shared state of the run if this
    /// process executes it. Other runs are followed through the log.
    ///
    /// # Errors
    /// Returns an error if the run could not be handed to a worker. The caller then releases the lease of the
    /// run and returns the error from `execute` or `resume`. The run stays in the log, and a later sweep
    /// executes it.
    async fn start(&self, started: StartedRun) -> Result<Option<Arc<LiveRun>>>;

    /// Returns the reason why an unfinished run has no active worker, or `None` if a worker may still be executing it.
    /// Called for runs without a valid lease that this process does not execute itself.
    async fn stop_reason(&self, run_ref: &RunRef) -> Option<Error>;

    /// Resolves once the engine knows that the run has no active worker. Callers should then re-read the
    /// log. An engine that cannot determine this never resolves the future.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    async fn until_stopped(&self, _run_ref: &RunRef) {
        std::future::pending().await
    }

    /// Returns `true` if the engine recovers a run with an expired lease by itself, in which case sweeps skip
    /// it. If the process that started the run crashed before [`start`](Self::start), the engine does not
    /// know the run yet, and may start its execution here.
    ///
    /// # Errors
    /// Returns an error if the engine cannot determine this now.
    async fn recovers(&self, _run_ref: &RunRef) -> Result<bool> {
        Ok(false)
    }

    /// Shuts the engine down. Each [`AgentExecutor::shutdown`](helix_agents_core::executor::AgentExecutor::shutdown)
    /// calls it after the tasks of the runtime have ended.
    async fn shutdown(&self) {}
}

/// An engine with a builder, which [`Runtime::builder`](crate::Runtime::builder) returns.
pub trait BuiltEngine: Engine {
    /// The builder of a runtime on this engine.
    type Builder: Default;
}

/// A run that has just been started in the log and is not executed yet.
#[derive(Debug)]
pub struct StartedRun {
    /// The driver that executes the run.
    pub driver: Box<Driver>,
    /// The keeper of the run's lease.
    pub lease: LeaseKeeper,
    /// The events of the append that started the run.
    pub events: Vec<Event>,
    /// The unfinished run that this run took over. That run can no longer append to the log, so an engine may stop
    /// executing it.
    pub superseded: Option<RunRef>,
    /// `true` if a tool of this process started the run. The tool may wait for the end of this run. An engine that
    /// limits concurrent runs must therefore not queue this run: the tool's run occupies a place while it waits, so the
    /// two could deadlock.
    pub in_tool: bool,
}

impl StartedRun {
    /// Prepares the run for execution as [work items](crate::WorkItem), by this process or another one.
    #[must_use]
    pub fn in_work_items(self) -> RunRef {
        let run_ref = self.driver.run_ref();
        if self.driver.runtime().engine().is_in_process() {
            let context = Arc::clone(self.driver.context());
            let here =
                LocalRunContext { agent: self.driver.agent, hooks: self.driver.inherited_hooks };
            context.local_runs().insert(run_ref.run.clone(), here);
        }
        run_ref
    }
}
