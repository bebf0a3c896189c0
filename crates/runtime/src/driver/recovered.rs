//! Reports events to observers again whose process may have stopped before its observers handled them.

use helix_agents_core::error::Result;
use helix_agents_core::id::RunId;
use helix_agents_core::observer::report_recovered;
use helix_agents_core::session::RunStatus;

use super::Driver;
use crate::lease_keeper::LeaseKeeper;

impl Driver {
    /// Reports the last events of the run that this run has taken over, if there is one. `version` is the version of the
    /// log after the start of this run.
    pub(super) async fn report_superseded_run(
        &self,
        lease: &mut LeaseKeeper,
        version: u64,
    ) -> Result<()> {
        let previous = self.journal.session().runs().rev().nth(1);
        let superseded = previous.filter(|run| run.status == RunStatus::Superseded);
        let Some(run) = superseded.map(|run| run.id.clone()) else { return Ok(()) };
        self.report_recovered_run(lease, &run, version).await
    }

    /// Reports the last events of this run, which another process may have appended before it stopped.
    pub(crate) async fn report_repeated_run(&self, lease: &mut LeaseKeeper) -> Result<()> {
        let (run, version) = (self.live.run.clone(), self.journal.acknowledged());
        self.report_recovered_run(lease, &run, version).await
    }

    async fn report_recovered_run(
        &self,
        lease: &mut LeaseKeeper,
        run: &RunId,
        up_to: u64,
    ) -> Result<()> {
        let (context, session) = (&self.context, &self.live.session);
        if context.observers.is_empty() {
            return Ok(());
        }
        let mut reported =
            Box::pin(report_recovered(&*context.store, &context.observers, session, run, up_to));
        if let Err(error) = self.under_lease(lease, reported.as_mut()).await? {
            tracing::warn!(%session, %error, "observers may lack events of an interrupted run");
        }
        Ok(())
    }
}
