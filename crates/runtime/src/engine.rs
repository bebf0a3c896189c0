//! What makes one runtime different from another.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::error::{Error, Result};
use helix_agents_core::event::Event;

use crate::driver::Driver;
use crate::lease::LeaseKeeper;
use crate::live::LiveRun;
use crate::part::RunRef;

/// How the runs of a runtime are carried out, once they are in the log.
#[async_trait]
pub trait Engine: Debug + Send + Sync + 'static {
    /// The kind of runtime, as it stands in logs: each takes over only runs of its own kind.
    fn kind(&self) -> &'static str;

    /// Whether all of a run is carried out in the process that began it.
    fn keeps_to_process(&self) -> bool {
        true
    }

    /// Whether the engine goes on by itself with a run whose lease has run out.
    ///
    /// # Errors
    /// If that could not be found out.
    async fn goes_on(&self, of: &RunRef) -> Result<bool> {
        let _ = of;
        Ok(false)
    }

    /// Has a run carried out that has just begun. Its shared part, if it is this process that carries
    /// it out; other runs are followed through the log.
    ///
    /// # Errors
    /// If nobody could be found who carries it out.
    async fn carry_out(&self, begun: Begun) -> Result<Option<Arc<LiveRun>>>;

    /// Why nobody carries a run out any more that has not ended. None as long as somebody may: asked of
    /// runs of other processes, and without a lease.
    async fn stopped(&self, of: &RunRef) -> Option<Error>;
}

/// A run that has just begun.
#[derive(Debug)]
pub struct Begun {
    /// What it is carried out with.
    pub driver: Box<Driver>,
    /// Its lease.
    pub lease: LeaseKeeper,
    /// The events with which it began.
    pub events: Vec<Event>,
    /// The run that it took over from.
    pub over: Option<RunRef>,
}

impl Begun {
    /// Leaves the run to be carried out in [parts](crate::Part), by this process or another one.
    #[must_use]
    pub fn in_parts(self) -> RunRef {
        let of = self.driver.of();
        let parts = Arc::clone(self.driver.parts());
        parts.chains().insert(of.run.clone(), self.driver.hooks);
        of
    }
}
