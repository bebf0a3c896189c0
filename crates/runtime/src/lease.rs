//! Keeping a run's lease, and hearing of requests on the way.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Clock;
use helix_agents_core::error::Result;
use helix_agents_core::id::{RequestId, RunId, SessionId};
use helix_agents_core::session::{Journal, Request, RequestKind};
use helix_agents_core::store::{Head, Renewal, StateStore};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::parts::Parts;
use crate::run_ref::RunRef;
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
    /// Until when the lease is good, by the process's monotonic clock.
    until: Duration,
    requests: watch::Receiver<()>,
    shutdown: CancellationToken,
    /// The request to interrupt the run that it has heard of.
    interrupt: Option<RequestId>,
}

impl LeaseKeeper {
    /// The keeper of a lease that is good until the process's monotonic clock is there.
    pub(crate) fn new(parts: &Parts, session: SessionId, run: RunId, until: Duration) -> Self {
        Self {
            store: Arc::clone(&parts.store),
            clock: Arc::clone(&parts.clock),
            session,
            run,
            ttl: parts.lease,
            until,
            requests: parts.requests.subscribe(),
            shutdown: parts.tasks.shutdown.clone(),
            interrupt: None,
        }
    }

    /// The keeper of the lease of a run that this one finds in the log, and the session's head; none if
    /// it is not the session's any more. A lease that has not long to go is extended first.
    ///
    /// # Errors
    /// The store's, and [`ErrorCode::StoreUnavailable`] if the lease could not be extended in time.
    pub(crate) async fn attach(parts: &Parts, of: &RunRef) -> Result<Option<(Head, Self)>> {
        let (store, clock, ttl) = (&parts.store, &parts.clock, parts.lease);
        let keeper = |until| Self::new(parts, of.session.clone(), of.run.clone(), until);
        let sent = clock.monotonic();
        let head = store.head(&of.session).await?;
        let owned = |head: &Head| head.summary.run.as_ref() == Some(&of.run);
        let Some(head) = head.filter(owned) else { return Ok(None) };
        let left = head.lease_until.map_or(Duration::ZERO, |until| until.since(head.read_at));
        if left * 2 > ttl {
            return Ok(Some((head, keeper(sent + left.min(ttl)))));
        }
        let sent = clock.monotonic();
        let renewal = store.renew(&of.session, &of.run, ttl);
        let Ok(renewal) = tokio::time::timeout(ttl * 2 / 3, renewal).await else {
            return Err(Stop::LeaseLost.into_error(&of.session, &of.run));
        };
        let Renewal { renewed, head } = renewal?;
        Ok(renewed.then(|| (head, keeper(sent + ttl))))
    }

    /// Notes that an append extended the lease. `sent` is when the append was sent.
    pub(crate) fn extended(&mut self, sent: Duration) {
        self.until = self.until.max(sent + self.ttl);
    }

    /// Whether the lease was not extended for so long that no effect may be started any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.elapsed() >= self.ttl * 2 / 3
    }

    /// Since when it was extended last.
    fn elapsed(&self) -> Duration {
        (self.now() + self.ttl).saturating_sub(self.until)
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
            let elapsed = self.elapsed();
            let wait = if elapsed < due { due - elapsed } else { (lost - elapsed).min(due) / 4 };
            let wait = wait.max(Duration::from_millis(5));
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return News::Stop(Stop::ShuttingDown),
                // The sender lives as long as the runtime.
                _ = self.requests.changed() => {
                    if let Some(news) = self.requested(known).await {
                        return news;
                    }
                }
                () = self.clock.sleep(wait) => {
                    if self.elapsed() >= due
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
        let left = (self.ttl * 2 / 3).saturating_sub(self.elapsed());
        let renewal =
            tokio::time::timeout(left, self.store.renew(&self.session, &self.run, self.ttl));
        match renewal.await {
            Ok(Ok(renewal)) if !renewal.renewed => Some(News::Stop(Stop::Superseded)),
            Ok(Ok(renewal)) => {
                self.until = sent + self.ttl;
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
        release(&*self.store, &self.session, &self.run, self.ttl).await;
    }
}

/// Gives a lease up.
pub(crate) async fn release(
    store: &dyn StateStore,
    session: &SessionId,
    run: &RunId,
    ttl: Duration,
) {
    let release = store.renew(session, run, Duration::ZERO);
    match tokio::time::timeout(ttl / 3, release).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%session, %error, "the lease was not released"),
        Err(_) => tracing::warn!(%session, "the lease was not released in time"),
    }
}
