//! Reports events to observers again whose process may have stopped before its observers handled them.

use helix_agents_core::error::Result;
use helix_agents_core::id::RunId;
use helix_agents_core::observer::report_recovered;
use helix_agents_core::session::RunStatus;

use super::Driver;
use crate::lease_keeper::LeaseKeeper;

impl Driver {
    /// Reports the last events of the runs that this run has taken over. `version` is the version of the log after the start
    /// of this run.
    pub(super) async fn report_superseded_run(
        &self,
        lease: &mut LeaseKeeper,
        version: u64,
    ) -> Result<()> {
        let runs: Vec<_> = self.superseded_runs().collect();
        if runs.is_empty() {
            return Ok(());
        }
        self.report_recovered_runs(lease, &runs, version).await
    }

    /// Reports the last events of this run, which another process may have appended before it stopped, and those of the runs
    /// that it has taken over.
    pub(crate) async fn report_repeated_run(&self, lease: &mut LeaseKeeper) -> Result<()> {
        let runs: Vec<_> =
            std::iter::once(self.live.run.clone()).chain(self.superseded_runs()).collect();
        self.report_recovered_runs(lease, &runs, self.journal.acknowledged()).await
    }

    /// Returns the run that this run has taken over, the run that that one had taken over, and so on. A process that takes a
    /// run over may stop before its observers have handled the events that it recovered.
    fn superseded_runs(&self) -> impl Iterator<Item = RunId> {
        let previous = self.journal.session().runs().rev().skip(1);
        previous.take_while(|run| run.status == RunStatus::Superseded).map(|run| run.id.clone())
    }

    async fn report_recovered_runs(
        &self,
        lease: &mut LeaseKeeper,
        runs: &[RunId],
        up_to: u64,
    ) -> Result<()> {
        let (context, session) = (&self.context, &self.live.session);
        if context.observers.is_empty() {
            return Ok(());
        }
        let mut reported =
            Box::pin(report_recovered(&*context.store, &context.observers, session, runs, up_to));
        if let Err(error) = self.under_lease(lease, reported.as_mut()).await? {
            tracing::warn!(%session, %error, "observers may lack events of an interrupted run");
        }
        Ok(())
    }
}
