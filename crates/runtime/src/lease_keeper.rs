//! Renews a run's lease and detects requests to the run.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::Either;
use helix_agents_core::clock::Clock;
use helix_agents_core::error::{ErrorCode, Result};
use helix_agents_core::id::{RequestId, RunId, SessionId};
use helix_agents_core::session::{Journal, StopKind, StopRequest};
use helix_agents_core::store::{Head, Renewal, StateStore};
use tokio_util::sync::CancellationToken;

use crate::cancel_reason::CancelReason;
use crate::context::RuntimeContext;
use crate::lease_view::{LeaseMargin, LeaseView};
use crate::run_ref::RunRef;
use crate::timer::Timer;
use crate::wake_filter::WakeFilter;
use crate::wakeups::WakeupReceiver;

/// An event that a run has to handle while an effect is running.
#[derive(Debug)]
pub(crate) enum LeaseEvent {
    /// The effect has to be cancelled.
    Cancel(CancelReason),
    /// The run has to stop at the next step boundary.
    Interrupt(StopRequest),
    /// The lease was renewed after it had almost expired. Paused work can continue.
    Renewed,
}

/// Keeps the lease of one run alive while effects are running.
#[derive(Debug)]
pub struct LeaseKeeper {
    store: Arc<dyn StateStore>,
    clock: Arc<dyn Clock>,
    session: SessionId,
    run: RunId,
    ttl: Duration,
    lease_view: LeaseView,
    wakeup: WakeupReceiver,
    shutdown: CancellationToken,
    /// The id of the last interrupt request that was detected.
    interrupt: Option<RequestId>,
    /// The timer for the next check of the lease, kept across effects. An append extends the lease but does not move
    /// the timer, so a check may run earlier than necessary, but never too late.
    timer: Timer,
    wake_filter: Arc<WakeFilter>,
}

impl LeaseKeeper {
    /// Creates the keeper of a lease that is valid until this monotonic time.
    pub(crate) fn new(
        context: &RuntimeContext,
        session: SessionId,
        run: RunId,
        until: Duration,
    ) -> Self {
        Self {
            store: Arc::clone(&context.store),
            clock: Arc::clone(&context.clock),
            wakeup: context.wakeups.subscribe(&session),
            session,
            run,
            ttl: context.lease,
            lease_view: LeaseView::new(Arc::clone(&context.clock), context.lease, until),
            shutdown: context.tasks.shutdown.clone(),
            interrupt: None,
            timer: Timer::default(),
            wake_filter: Arc::new(WakeFilter::new()),
        }
    }

    /// Returns the session's head and a keeper for the lease of a run that was started elsewhere. Returns `None` if
    /// the run is no longer the session's current run. A lease of which at most half remains is renewed first.
    ///
    /// # Errors
    /// Returns the errors of the store, and
    /// [`StoreUnavailable`](helix_agents_core::error::ErrorCode::StoreUnavailable) if the lease could not be renewed in
    /// time.
    pub(crate) async fn attach(
        context: &RuntimeContext,
        run_ref: &RunRef,
    ) -> Result<Option<(Head, Self)>> {
        let (store, clock, ttl) = (&context.store, &context.clock, context.lease);
        let keeper =
            |until| Self::new(context, run_ref.session.clone(), run_ref.run.clone(), until);
        let sent = clock.monotonic();
        let head = store.head(&run_ref.session).await?;
        let owned = |head: &Head| head.summary.run.as_ref() == Some(&run_ref.run);
        let Some(head) = head.filter(owned) else { return Ok(None) };
        let left = head.lease_until.map_or(Duration::ZERO, |until| until.since(head.read_at));
        if left * 2 > ttl {
            return Ok(Some((head, keeper(sent.saturating_add(left.min(ttl))))));
        }
        let sent = clock.monotonic();
        let renewal = store.renew(&run_ref.session, &run_ref.run, ttl);
        let Ok(renewal) = tokio::time::timeout(ttl * 2 / 3, renewal).await else {
            return Err(CancelReason::LeaseLost.into_error(&run_ref.session, &run_ref.run));
        };
        let Renewal { renewed, head } = renewal?;
        Ok(renewed.then(|| (head, keeper(sent.saturating_add(ttl)))))
    }

    /// Records that an append extended the lease. `sent` is the time at which the append was sent.
    pub(crate) fn extended(&mut self, sent: Duration) {
        self.lease_view.extend(sent);
    }

    /// Returns the view of the lease that calls use while they run concurrently with the journal.
    #[must_use]
    pub fn view(&self) -> &LeaseView {
        &self.lease_view
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Records that the run has detected this interrupt request.
    pub(crate) fn note_interrupt(&mut self, request: &StopRequest) {
        self.interrupt = Some(request.id.clone());
    }

    /// Waits for an effect and keeps the lease in the meantime. Returns the output of the effect, or an event that the
    /// run has to handle first.
    pub(crate) async fn watch_while<T>(
        &mut self,
        known: u64,
        mut effect: Pin<&mut (impl Future<Output = T> + Send)>,
    ) -> Either<T, LeaseEvent> {
        let (lease_view, wake_filter) = (self.lease_view.clone(), Arc::clone(&self.wake_filter));
        let mut watch = pin!(self.watch(known));
        wake_filter.restart();
        poll_fn(|cx| {
            loop {
                // Polled first, because nearly every wakeup is for the effect.
                let is_owned = lease_view.has(LeaseMargin::Third);
                if is_owned && let Poll::Ready(done) = effect.as_mut().poll(cx) {
                    return Poll::Ready(Either::Left(done));
                }
                if let Poll::Ready(event) = wake_filter.poll(watch.as_mut(), cx) {
                    return Poll::Ready(Either::Right(event));
                }
                // The skipped effect may have been woken, and the lease may have been renewed just now.
                if is_owned || !lease_view.has(LeaseMargin::Third) {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Renews the lease until there is an event for the current effect. `known` is the log version that the run's
    /// journal has read.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub(crate) async fn watch(&mut self, known: u64) -> LeaseEvent {
        loop {
            // After a third of the lease the next renewal is due; after two thirds the lease counts as at risk.
            let due = self.ttl / 3;
            let lost = self.ttl * 2 / 3;
            let age = self.lease_view.age();
            if age >= lost {
                // Renewals failed or this process was paused. Another process may have taken over.
                return self.renew_late(known).await;
            }
            let wait = if age < due { due - age } else { (lost - age).min(due) / 4 };
            let wait = wait.max(Duration::from_millis(5));
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => return LeaseEvent::Cancel(CancelReason::ShuttingDown),
                () = self.wakeup.notified() => {
                    // Boxed, like every rare branch here, so that the future of a waiting run does not reserve space
                    // for the largest of them.
                    if let Some(event) = Box::pin(self.requested(known)).await {
                        return event;
                    }
                }
                () = self.lease_view.renewal_requested() => {
                    if let Some(event) = self.renew(known).await {
                        return event;
                    }
                }
                () = self.timer.wait(&self.clock, wait) => {
                    let age = self.lease_view.age();
                    if (due..lost).contains(&age)
                        && let Some(event) = self.renew(known).await
                    {
                        return event;
                    }
                }
            }
        }
    }

    /// Renews a lease that is not at risk yet.
    async fn renew(&mut self, known: u64) -> Option<LeaseEvent> {
        let left = (self.ttl * 2 / 3).saturating_sub(self.lease_view.age());
        Box::pin(self.renew_within(left, known)).await.unwrap_or(None)
    }

    /// Tries one last time to renew a lease that has expired or is about to expire. The run continues if it still owns
    /// the session.
    async fn renew_late(&mut self, known: u64) -> LeaseEvent {
        match Box::pin(self.renew_within(self.ttl / 6, known)).await {
            Ok(None) if self.lease_view.has(LeaseMargin::Third) => LeaseEvent::Renewed,
            Ok(Some(event)) => event,
            Ok(None) | Err(_) => LeaseEvent::Cancel(CancelReason::LeaseLost),
        }
    }

    /// Renews the lease, and returns a request to the run that was appended in the meantime.
    ///
    /// # Errors
    /// Returns an error if the lease was not renewed in time.
    async fn renew_within(
        &mut self,
        limit: Duration,
        known: u64,
    ) -> Result<Option<LeaseEvent>, NotRenewed> {
        let sent = self.now();
        let renewal = self.store.renew(&self.session, &self.run, self.ttl);
        match tokio::time::timeout(limit, renewal).await {
            Ok(Ok(renewal)) if !renewal.renewed => {
                Ok(Some(LeaseEvent::Cancel(CancelReason::Superseded)))
            }
            Ok(Ok(renewal)) => {
                self.lease_view.extend(sent);
                let has_news = renewal.head.position.version > known;
                Ok(if has_news { self.requested(known).await } else { None })
            }
            Ok(Err(error)) if error.code() == ErrorCode::SessionNotFound => {
                Ok(Some(LeaseEvent::Cancel(CancelReason::SessionDeleted)))
            }
            Ok(Err(error)) => {
                tracing::warn!(session = %self.session, %error, "the lease was not renewed");
                Err(NotRenewed)
            }
            Err(_) => Err(NotRenewed),
        }
    }

    async fn requested(&mut self, known: u64) -> Option<LeaseEvent> {
        match Journal::requested(&*self.store, &self.session, &self.run, known).await {
            Ok(Some((StopKind::Abort, _))) => Some(LeaseEvent::Cancel(CancelReason::Aborted)),
            Ok(Some((StopKind::Interrupt, request))) => {
                let new = self.interrupt.as_ref() != Some(&request.id);
                self.note_interrupt(&request);
                new.then_some(LeaseEvent::Interrupt(request))
            }
            Ok(None) => None,
            Err(error) => {
                tracing::warn!(session = %self.session, %error, "requests could not be read");
                None
            }
        }
    }

    /// Releases the lease, so that another process can take over immediately.
    pub(crate) async fn release(&mut self) {
        release(&*self.store, &self.session, &self.run, self.ttl).await;
    }
}

/// The store did not renew the lease in time or returned an error.
struct NotRenewed;

/// Releases a lease.
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
