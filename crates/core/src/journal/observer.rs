//! Observers of the log: they receive events after the store has acknowledged them.

use std::fmt;
use std::sync::Arc;

use super::load::not_found;
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{Event, RecordedEvent, SCHEMA, decode};
use crate::id::{RunId, SessionId};
use crate::machine::session::{Session, SessionOverview};
use crate::panics::caught;
use crate::store::{StateStore, StoredAppend};

/// The number of events at the end of a log that are reported again after their process has stopped.
pub const RECOVERED_EVENTS: u64 = 256;

/// The number of appends that are read at once.
const PAGE: u32 = 256;

/// An observer of the events that this process appends.
///
/// Exactly one process appends an event, so at most one process reports it with [`recorded`](Self::recorded) or
/// [`requested`](Self::requested). If that process crashes, the process that continues the session reports the last events of
/// the interrupted run again, with [`recovered`](Self::recovered). It also reports those of the runs that the interrupted run
/// had taken over. Requests, and the end of a run that no other process continues, are not reported again.
///
/// Forks and imports are not reported.
///
/// # Contract
///
/// - A method returns quickly. [`recorded`](Self::recorded) and [`recovered`](Self::recovered) run on the task of the run, and
///   [`requested`](Self::requested) on that of the caller.
/// - A method cannot fail a run. A panic is logged and ignored.
///
/// # Examples
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// use helix_agents_core::event::{Event, RecordedEvent};
/// use helix_agents_core::observer::LogObserver;
/// use helix_agents_core::session::Session;
///
/// /// Counts the tokens that this process used.
/// #[derive(Debug, Default)]
/// struct TokenCounter(AtomicU64);
///
/// impl LogObserver for TokenCounter {
///     fn recorded(&self, _session: &Session, events: &[RecordedEvent]) {
///         for recorded in events {
///             if let Event::ModelReplied(reply) = &recorded.event {
///                 let usage = reply.total_usage();
///                 self.0.fetch_add(usage.input_tokens + usage.output_tokens, Ordering::Relaxed);
///             }
///         }
///     }
/// }
/// ```
pub trait LogObserver: fmt::Debug + Send + Sync + 'static {
    /// Called after this process has appended events of a run. `session` is the session after this append.
    fn recorded(&self, session: &Session, events: &[RecordedEvent]);

    /// Called after this process has appended a request from outside a run: an answer, a message, an interrupt or an abort.
    /// `session` is the session after this append.
    fn requested(&self, _session: &SessionOverview, _request: &RecordedEvent) {}

    /// Called for each of the last appends of a run whose process stopped. `session` is the session after that append, as
    /// in the call of [`recorded`](Self::recorded) that the stopped process may have made.
    fn recovered(&self, _session: &Session, _events: &[RecordedEvent]) {}
}

/// The observers of a process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Observers(Option<Arc<[Arc<dyn LogObserver>]>>);

impl Observers {
    /// Creates the collection of these observers.
    #[must_use]
    pub fn new(observers: Vec<Arc<dyn LogObserver>>) -> Self {
        Self((!observers.is_empty()).then(|| observers.into()))
    }

    /// Returns `true` if there are no observers.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Reports the events of one append.
    pub(super) fn recorded(&self, session: &Session, appended: Appended<'_>) {
        if self.0.is_some() {
            let events = appended.to_recorded();
            self.each(|observer| observer.recorded(session, &events));
        }
    }

    pub(super) fn requested(&self, session: &SessionOverview, event: Event, at: Timestamp) {
        if self.0.is_some() {
            let seq = session.position().version;
            let request = RecordedEvent { seq, at, run: None, schema: SCHEMA, event };
            self.each(|observer| observer.requested(session, &request));
        }
    }

    fn recovered(&self, session: &Session, events: &[RecordedEvent]) {
        self.each(|observer| observer.recovered(session, events));
    }

    fn each(&self, report: impl Fn(&dyn LogObserver)) {
        for observer in self.0.iter().flat_map(|observers| observers.iter()) {
            // `caught` logs the panic.
            let _panicked = caught("a log observer", || report(&**observer));
        }
    }
}

/// The events of one append of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appended<'a> {
    pub events: &'a [Event],
    /// The version of the log before the append.
    pub after: u64,
    pub at: Timestamp,
    pub run: &'a RunId,
}

impl Appended<'_> {
    fn to_recorded(self) -> Vec<RecordedEvent> {
        let recorded = |(seq, event): (u64, &Event)| RecordedEvent {
            seq,
            at: self.at,
            run: Some(self.run.clone()),
            schema: SCHEMA,
            event: event.clone(),
        };
        (self.after + 1..).zip(self.events).map(recorded).collect()
    }
}

/// Reports the appends of interrupted runs that are among the last [`RECOVERED_EVENTS`] events up to a version of the log. The
/// whole log is folded for that, so call this only after a process has stopped.
///
/// # Errors
/// Returns [`ErrorCode::SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and the errors of the store.
pub async fn report_recovered(
    store: &dyn StateStore,
    observers: &Observers,
    session: &SessionId,
    runs: &[RunId],
    up_to: u64,
) -> Result<()> {
    if observers.is_empty() {
        return Ok(());
    }
    let since = up_to.saturating_sub(RECOVERED_EVENTS);
    let mut fold = Session::new(session.clone());
    loop {
        let after = fold.position().version;
        let page = store.read_log(session, after, PAGE).await?;
        if page.is_empty() {
            return if after == 0 { Err(not_found(session)) } else { Ok(()) };
        }
        for append in page {
            if append.first > up_to {
                return Ok(());
            }
            fold.apply_append(&append)?;
            if is_of_run(&append, runs) && append.version() > since {
                observers.recovered(&fold, &decode(session, &append)?);
            }
        }
    }
}

fn is_of_run(append: &StoredAppend, runs: &[RunId]) -> bool {
    append.run.as_ref().is_some_and(|run| runs.contains(run))
}
