//! Keeping a run's lease, and hearing of requests on the way.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Clock;
use helix_agents_core::id::{RequestId, RunId, SessionId};
use helix_agents_core::session::{Journal, Request, RequestKind};
use helix_agents_core::store::StateStore;
use tokio_util::sync::CancellationToken;

use crate::live::LiveRun;
use crate::stop::Stop;

/// What a run hears of while an effect runs.
#[derive(Debug)]
pub(crate) enum News {
    /// The effect is to be broken off.
    Stop(Stop),
    /// The run is to stop at the next step boundary.
    Interrupt(Request),
}

/// Keeps the lease of one run alive while its effects run.
#[derive(Debug)]
pub struct LeaseKeeper {
    store: Arc<dyn StateStore>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    run: RunId,
    ttl: Duration,
    /// When the lease was extended last, by the process's monotonic clock.
    renewed: Duration,
    live: Arc<LiveRun>,
    shutdown: CancellationToken,
    /// The request to interrupt the run that it has heard of.
    interrupt: Option<RequestId>,
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
        Self { store, clock, session, run, ttl, renewed, live, shutdown, interrupt: None }
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

    /// Notes that the run has heard of this request to interrupt it.
    pub(crate) fn heard(&mut self, request: &Request) {
        self.interrupt = Some(request.id.clone());
    }

    /// Runs until there is news for the present effect. `known` is the version that the run's journal
    /// has seen.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub(crate) async fn watch(&mut self, known: u64) -> News {
        loop {
            // A third for the next renewal, two thirds to notice that none went through.
            let due = self.ttl / 3;
            let lost = self.ttl * 2 / 3;
            if self.is_lost() {
                return News::Stop(Stop::LeaseLost);
            }
            let elapsed = self.now().saturating_sub(self.renewed);
            let wait = if elapsed < due { due - elapsed } else { (lost - elapsed).min(due) / 4 };
            let wait = wait.max(Duration::from_millis(5));
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return News::Stop(Stop::ShuttingDown),
                () = self.live.nudge.notified() => {
                    if let Some(news) = self.requested(known).await {
                        return news;
                    }
                }
                () = self.clock.sleep(wait) => {
                    if self.now().saturating_sub(self.renewed) >= due
                        && let Some(news) = self.renew(known).await
                    {
                        return news;
                    }
                }
            }
        }
    }

    async fn renew(&mut self, known: u64) -> Option<News> {
        let sent = self.now();
        let left = (self.ttl * 2 / 3).saturating_sub(sent.saturating_sub(self.renewed));
        let renewal =
            tokio::time::timeout(left, self.store.renew(&self.session, &self.run, self.ttl));
        match renewal.await {
            Ok(Ok(renewal)) if !renewal.renewed => Some(News::Stop(Stop::Superseded)),
            Ok(Ok(renewal)) => {
                self.renewed = sent;
                if renewal.head.position.version > known {
                    self.requested(known).await
                } else {
                    None
                }
            }
            Ok(Err(error)) => {
                tracing::warn!(session = %self.session, %error, "the lease was not renewed");
                None
            }
            Err(_) => Some(News::Stop(Stop::LeaseLost)),
        }
    }

    async fn requested(&mut self, known: u64) -> Option<News> {
        match Journal::requested(&*self.store, &self.session, &self.run, known).await {
            Ok(Some((RequestKind::Abort, _))) => Some(News::Stop(Stop::Aborted)),
            Ok(Some((RequestKind::Interrupt, request))) => {
                let new = self.interrupt.as_ref() != Some(&request.id);
                self.heard(&request);
                new.then_some(News::Interrupt(request))
            }
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(session = %self.session, %error, "requests could not be read");
                None
            }
        }
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
