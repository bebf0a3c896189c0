//! Requests from outside a run. Any process may append them to the log of a run that another
//! process owns.

use std::collections::BTreeMap;

use super::conflicts::{MAX_CONFLICTS, too_many_conflicts};
use super::load::{CatchUpOutcome, follow, not_found};
use super::{Observers, SessionCache, SessionReader, log_events, root_has_tags};
use crate::clock::IdSource;
use crate::clock::IdSourceExt as _;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{ChildNotice, Event, SCHEMA, encode};
use crate::fault;
use crate::id::{RequestId, RunId, SessionId};
use crate::machine::child_status::ChildStatus;
use crate::machine::session::{SessionOverview, StopKind, StopRequest};
use crate::message::UserMessage;
use crate::store::{Append, AppendOutcome, Guard, Head, LeaseChange, StateStore};
use crate::trace::TraceParent;

/// The access to a store for processes that append requests from outside a run.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'a> {
    /// The store. Use a [`RetryingStore`](crate::store::RetryingStore) if the store can be
    /// temporarily unavailable.
    pub store: &'a dyn StateStore,
    /// The source of new ids.
    pub ids: &'a dyn IdSource,
    /// The process's cache of sessions, if there is one.
    pub folds: Option<&'a SessionCache>,
    /// Labels that the root of the session must have, if any. Otherwise an operation changes nothing and
    /// fails with [`ErrorCode::SessionNotFound`]. The check and the append are atomic.
    pub required_tags: Option<&'a BTreeMap<String, String>>,
    /// The observers of the events that are appended, if there are any.
    pub observers: Option<&'a Observers>,
}

/// Asks a run to stop. Its owner handles the request with its next append, or earlier if it is
/// notified. If the owner has crashed, the run that takes over handles it. Returns the sessions
/// that received the request: this one and its descendants.
///
/// # Errors
/// Returns [`ErrorCode::SessionNotFound`], [`ErrorCode::NothingToStop`] if the given run has
/// ended (or, without a given run, if no run is current), and the errors of the store.
pub async fn request(
    request_context: RequestContext<'_>,
    session: &SessionId,
    run: Option<&RunId>,
    kind: StopKind,
    reason: Option<String>,
) -> Result<Vec<SessionId>> {
    let request = StopRequest { id: request_context.ids.request(), reason };
    request_tree(request_context, session, run, kind, &request).await
}

async fn request_tree(
    request_context: RequestContext<'_>,
    session: &SessionId,
    run: Option<&RunId>,
    kind: StopKind,
    request: &StopRequest,
) -> Result<Vec<SessionId>> {
    let mut children = Vec::new();
    let decide = |fold: &SessionOverview| {
        children = recipients_below(fold, kind).collect();
        if fold.knows_request(&request.id) {
            return Ok(None);
        }
        let current = fold.current_run().map(|current| &current.id);
        let Some(current) = current.filter(|current| run.is_none_or(|run| run == *current)) else {
            return Err(Error::new(
                ErrorCode::NothingToStop,
                "the run is not in progress; there is nothing to stop",
            )
            .with_context("session", session));
        };
        let (run, StopRequest { id: request, reason }) = (current.clone(), request.clone());
        let event = match kind {
            StopKind::Interrupt => Event::InterruptRequested { request, run, reason },
            StopKind::Abort => Event::AbortRequested { request, run, reason },
        };
        Ok(Some((event, Guard::None)))
    };
    request_context.append(session, decide).await?;
    let mut requested = pass_down(request_context, &children, kind, request).await;
    requested.push(session.clone());
    Ok(requested)
}

/// Returns the direct children that a request to a session applies to as well.
fn recipients_below(fold: &SessionOverview, kind: StopKind) -> impl Iterator<Item = SessionId> {
    let open = fold.open_children().map(|child| &child.session);
    let stay = fold.companions().map(|(_, record)| &record.start.session);
    // Companions continue when their parent is interrupted.
    let stay = stay.filter(move |_| kind == StopKind::Abort);
    open.chain(stay).cloned()
}

/// Passes a request on to children, under the same id. More than one process may pass the same
/// request on, because the requesting process may have crashed before it did. Each child receives
/// the request only once. If a child cannot be reached, the run that waits for it handles the
/// request. Returns the sessions that received the request.
pub async fn pass_down(
    request_context: RequestContext<'_>,
    children: &[SessionId],
    kind: StopKind,
    request: &StopRequest,
) -> Vec<SessionId> {
    let mut requested = Vec::new();
    for child in children {
        match Box::pin(request_tree(request_context, child, None, kind, request)).await {
            Ok(below) => requested.extend(below),
            Err(error)
                if matches!(
                    error.code(),
                    ErrorCode::NothingToStop | ErrorCode::SessionNotFound
                ) => {}
            Err(error) => tracing::warn!(session = %child, %error, "a request was not passed down"),
        }
    }
    requested
}

/// Queues a message for a session. The message enters the transcript between two steps, and the
/// turn does not complete before that. A message with the same `request` is queued only once.
///
/// # Errors
/// Returns [`ErrorCode::SessionNotFound`], and the errors of the store.
pub async fn queue_message(
    request_context: RequestContext<'_>,
    session: &SessionId,
    request: &RequestId,
    message: &UserMessage,
    origin: MessageOrigin<'_>,
) -> Result<()> {
    let queue = |fold: &SessionOverview| Ok(queued_message(fold, request, message, origin));
    request_context.append(session, queue).await
}

/// Queues a message for a session whose turn has not ended. Returns `false` and queues nothing if the
/// turn has ended. A message with the same `request` is queued only once.
///
/// # Errors
/// Returns the errors of [`queue_message`].
pub async fn queue_message_in_turn(
    request_context: RequestContext<'_>,
    session: &SessionId,
    request: &RequestId,
    message: &UserMessage,
) -> Result<bool> {
    let mut is_in_turn = true;
    let queue = |fold: &SessionOverview| {
        let status = ChildStatus::of(fold, true, false);
        let has_ended = matches!(status, None | Some(ChildStatus::Ended(..)));
        is_in_turn = !has_ended || fold.knows_message(request);
        let origin = MessageOrigin::default();
        Ok(if is_in_turn { queued_message(fold, request, message, origin) } else { None })
    };
    request_context.append(session, queue).await?;
    Ok(is_in_turn)
}

/// Returns the event that queues a message, or `None` if the session has received it before.
fn queued_message(
    fold: &SessionOverview,
    request: &RequestId,
    message: &UserMessage,
    origin: MessageOrigin<'_>,
) -> Option<(Event, Guard)> {
    let (request, message) = (request.clone(), message.clone());
    let (from, trace) = match origin {
        MessageOrigin::Caller { trace } => (None, trace),
        MessageOrigin::Companion(notice) => (Some(notice.clone()), None),
    };
    let is_known = fold.knows_message(&request);
    (!is_known).then_some((Event::MessageQueued { request, message, from, trace }, Guard::None))
}

/// The origin of a queued message. Default: a caller without a trace.
#[derive(Debug, Clone, Copy)]
pub enum MessageOrigin<'a> {
    /// A caller sent the message.
    Caller {
        /// The caller's trace.
        trace: Option<TraceParent>,
    },
    /// The message reports that a companion has ended.
    Companion(&'a ChildNotice),
}

impl Default for MessageOrigin<'_> {
    fn default() -> Self {
        Self::Caller { trace: None }
    }
}

impl<'a> RequestContext<'a> {
    /// Creates a context without a cache, required labels and observers.
    #[must_use]
    pub const fn new(store: &'a dyn StateStore, ids: &'a dyn IdSource) -> Self {
        Self { store, ids, folds: None, required_tags: None, observers: None }
    }

    /// Requires these labels of the root of the session.
    #[must_use]
    pub fn requiring(self, tags: &'a BTreeMap<String, String>) -> Self {
        Self { required_tags: Some(tags), ..self }
    }

    /// Returns `true` if the root of the session has the required labels.
    pub(super) async fn permits(self, head: &Head) -> Result<bool> {
        match self.required_tags {
            Some(required) => root_has_tags(self.store, head, required).await,
            None => Ok(true),
        }
    }

    /// Returns a reader of the store's sessions.
    pub(super) fn logs(self) -> SessionReader<'a> {
        SessionReader { store: self.store, folds: self.folds }
    }

    /// Appends the event that `decide` returns for the session's current state. Appends nothing if
    /// `decide` returns `None`.
    pub(super) async fn append(
        self,
        session: &SessionId,
        mut decide: impl FnMut(&SessionOverview) -> Result<Option<(Event, Guard)>> + Send,
    ) -> Result<()> {
        let mut fold = self.logs().overview(session).await?;
        for _ in 0..MAX_CONFLICTS {
            let head = head(self.store, session).await?;
            // The fold was read before. If it is of an earlier session with this id, the append fails.
            if !self.permits(&head).await? {
                return Err(not_found(session));
            }
            fold.observe(head.read_at);
            let Some((event, guard)) = decide(&fold)? else { return Ok(()) };
            let expected = fold.position().clone();
            let before = fold.clone();
            // Applying the event first keeps duplicate and void requests out of the log.
            fold.apply(&event, None)?;
            let append = Append {
                session: session.clone(),
                expected,
                id: self.ids.append(),
                run: None,
                schema: SCHEMA,
                count: 1,
                body: encode(std::slice::from_ref(&event))?,
                summary: Some(fold.summary()),
                usage: (fold.usage() != before.usage()).then(|| fold.stored_usage()),
                lease: LeaseChange::Keep,
                guard,
            };
            fault::point("request.before_append");
            match self.store.append(append).await? {
                AppendOutcome::Appended { at } => {
                    fault::point("request.after_append");
                    log_events::requested(&fold, &event);
                    if let Some(observers) = self.observers {
                        observers.requested(&fold, event, at);
                    }
                    return Ok(());
                }
                AppendOutcome::Conflict { .. } => {
                    fold = before;
                    if follow(self.store, &mut fold).await? != CatchUpOutcome::UpToDate {
                        fold = self.logs().overview(session).await?;
                    }
                }
                AppendOutcome::GuardFailed { now, .. } => {
                    fold = before;
                    fold.observe(now);
                }
                // Another session may have the id now, which the next round checks.
                AppendOutcome::HistoryLost if self.required_tags.is_some() => {
                    fold = self.logs().overview(session).await?;
                }
                AppendOutcome::HistoryLost => {
                    let message = "the store lost acknowledged events";
                    return Err(Error::new(ErrorCode::HistoryLost, message)
                        .with_context("session", session));
                }
            }
        }
        Err(too_many_conflicts(session))
    }
}

pub(super) async fn head(store: &dyn StateStore, session: &SessionId) -> Result<Head> {
    store.head(session).await?.ok_or_else(|| not_found(session))
}
