//! Keeping a run's lease, and hearing of requests on the way.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Clock;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::session::Journal;
use helix_agents_core::store::StateStore;
use tokio_util::sync::CancellationToken;

use crate::live::LiveRun;
use crate::stop::Stop;

/// Keeps the lease of one run alive while its effects run.
#[derive(Debug)]
pub(crate) struct LeaseKeeper {
    store: Arc<dyn StateStore>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    run: RunId,
    ttl: Duration,
    /// When the lease was extended last, by the process's monotonic clock.
    renewed: Duration,
    live: Arc<LiveRun>,
    shutdown: CancellationToken,
}

impl LeaseKeeper {
    pub(crate) fn new(
        store: Arc<dyn StateStore>,
        clock: Arc<dyn Clock>,
        ttl: Duration,
        live: Arc<LiveRun>,
        shutdown: CancellationToken,
    ) -> Self {
        let renewed = clock.monotonic();
        let (session, run) = (live.session.clone(), live.run.clone());
        Self { store, clock, session, run, ttl, renewed, live, shutdown }
    }

    /// Notes that an append extended the lease. `sent` is when the append was sent.
    pub(crate) fn extended(&mut self, sent: Duration) {
        self.renewed = self.renewed.max(sent);
    }

    /// Whether the lease was not extended for so long that no effect may be started any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.now().saturating_sub(self.renewed) >= self.ttl * 2 / 3
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Runs until there is a reason to break off the present effect. `known` is the version that
    /// the run's journal has seen.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub(crate) async fn watch(&mut self, known: u64) -> Stop {
        loop {
            // A third for the next renewal, two thirds to notice that none went through.
            let due = self.ttl / 3;
            let lost = self.ttl * 2 / 3;
            if self.is_lost() {
                return Stop::LeaseLost;
            }
            let elapsed = self.now().saturating_sub(self.renewed);
            let wait = if elapsed < due { due - elapsed } else { (lost - elapsed).min(due) / 4 };
            let wait = wait.max(Duration::from_millis(5));
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return Stop::ShuttingDown,
                () = self.live.nudge.notified() => {
                    if self.abort_requested(known).await {
                        return Stop::Aborted;
                    }
                }
                () = self.clock.sleep(wait) => {
                    if self.now().saturating_sub(self.renewed) >= due
                        && let Some(stop) = self.renew(known).await
                    {
                        return stop;
                    }
                }
            }
        }
    }

    async fn renew(&mut self, known: u64) -> Option<Stop> {
        let sent = self.now();
        let left = (self.ttl * 2 / 3).saturating_sub(sent.saturating_sub(self.renewed));
        let renewal =
            tokio::time::timeout(left, self.store.renew(&self.session, &self.run, self.ttl));
        match renewal.await {
            Ok(Ok(renewal)) if !renewal.renewed => Some(Stop::Superseded),
            Ok(Ok(renewal)) => {
                self.renewed = sent;
                let news = renewal.head.position.version > known;
                (news && self.abort_requested(known).await).then_some(Stop::Aborted)
            }
            Ok(Err(error)) => {
                tracing::warn!(session = %self.session, %error, "the lease was not renewed");
                None
            }
            Err(_) => Some(Stop::LeaseLost),
        }
    }

    async fn abort_requested(&self, known: u64) -> bool {
        let asked = Journal::abort_requested(&*self.store, &self.session, &self.run, known).await;
        asked.unwrap_or_else(|error| {
            tracing::warn!(session = %self.session, %error, "requests could not be read");
            false
        })
    }

    /// Gives the lease up, so that another process may go on at once.
    pub(crate) async fn release(&self) {
        let release = self.store.renew(&self.session, &self.run, Duration::ZERO);
        match tokio::time::timeout(self.ttl / 3, release).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(session = %self.session, %error, "the lease was not released");
            }
            Err(_) => tracing::warn!(session = %self.session, "the lease was not released in time"),
        }
    }
}
