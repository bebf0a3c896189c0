//! Keeping a run's lease, and hearing of requests on the way.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Clock;
use helix_agents_core::error::Result;
use helix_agents_core::id::{RequestId, RunId, SessionId};
use helix_agents_core::session::{Journal, Request, RequestKind};
use helix_agents_core::store::{Head, Renewal, StateStore};
use tokio_util::sync::CancellationToken;

use crate::nudges::Nudged;
use crate::ownership::{Left, Ownership};
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
    /// The lease was renewed after it had nearly run out: what was held back may move again.
    Renewed,
}

/// Keeps the lease of one run alive while its effects run.
#[derive(Debug)]
pub struct LeaseKeeper {
    store: Arc<dyn StateStore>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    run: RunId,
    ttl: Duration,
    ownership: Ownership,
    nudged: Nudged,
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
            nudged: parts.nudges.of(&session),
            session,
            run,
            ttl: parts.lease,
            ownership: Ownership::new(Arc::clone(&parts.clock), parts.lease, until),
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
            return Ok(Some((head, keeper(sent.saturating_add(left.min(ttl))))));
        }
        let sent = clock.monotonic();
        let renewal = store.renew(&of.session, &of.run, ttl);
        let Ok(renewal) = tokio::time::timeout(ttl * 2 / 3, renewal).await else {
            return Err(Stop::LeaseLost.into_error(&of.session, &of.run));
        };
        let Renewal { renewed, head } = renewal?;
        Ok(renewed.then(|| (head, keeper(sent.saturating_add(ttl)))))
    }

    /// Notes that an append extended the lease. `sent` is when the append was sent.
    pub(crate) fn extended(&mut self, sent: Duration) {
        self.ownership.extend(sent);
    }

    /// The view of the lease for calls that run beside the journal.
    #[must_use]
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
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
            let age = self.ownership.age();
            if age >= lost {
                // Renewals failed, or this process stood still. Another process may have taken over.
                return self.renew_late(known).await;
            }
            let wait = if age < due { due - age } else { (lost - age).min(due) / 4 };
            let wait = wait.max(Duration::from_millis(5));
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return News::Stop(Stop::ShuttingDown),
                () = self.nudged.told() => {
                    if let Some(news) = self.requested(known).await {
                        return news;
                    }
                }
                () = self.ownership.wanted() => {
                    if let Some(news) = self.renew(known).await {
                        return news;
                    }
                }
                () = self.clock.sleep(wait) => {
                    let age = self.ownership.age();
                    if (due..lost).contains(&age)
                        && let Some(news) = self.renew(known).await
                    {
                        return news;
                    }
                }
            }
        }
    }

    /// Renews the lease while it is good for a while.
    async fn renew(&mut self, known: u64) -> Option<News> {
        let left = (self.ttl * 2 / 3).saturating_sub(self.ownership.age());
        self.renew_within(left, known).await.unwrap_or(None)
    }

    /// Asks once more for a lease that has nearly run out, or has: the run goes on if it is still the
    /// session's.
    async fn renew_late(&mut self, known: u64) -> News {
        match self.renew_within(self.ttl / 6, known).await {
            Ok(None) if self.ownership.has(Left::Some) => News::Renewed,
            Ok(Some(news)) => news,
            Ok(None) | Err(_) => News::Stop(Stop::LeaseLost),
        }
    }

    /// Renews the lease, and tells what was appended meanwhile that concerns the run.
    ///
    /// # Errors
    /// If it was not renewed in time.
    async fn renew_within(
        &mut self,
        limit: Duration,
        known: u64,
    ) -> Result<Option<News>, NotRenewed> {
        let sent = self.now();
        let renewal = self.store.renew(&self.session, &self.run, self.ttl);
        match tokio::time::timeout(limit, renewal).await {
            Ok(Ok(renewal)) if !renewal.renewed => Ok(Some(News::Stop(Stop::Superseded))),
            Ok(Ok(renewal)) => {
                self.ownership.extend(sent);
                let has_news = renewal.head.position.version > known;
                Ok(if has_news { self.requested(known).await } else { None })
            }
            Ok(Err(error)) => {
                tracing::warn!(session = %self.session, %error, "the lease was not renewed");
                Err(NotRenewed)
            }
            Err(_) => Err(NotRenewed),
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

/// The store did not answer in time, or with an error.
struct NotRenewed;

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

#[cfg(test)]
mod tests;
