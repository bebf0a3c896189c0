//! Requests from outside: appended by any process to the log of a run that another one owns.

use std::sync::Arc;

use super::load::{CatchUpOutcome, follow, not_found};
use super::{Request, SessionCache, SessionOverview, SessionReader};
use crate::clock::IdSource;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{ChildNotice, Event, SCHEMA, encode};
use crate::fault;
use crate::id::{RequestId, RunId, SessionId};
use crate::message::UserMessage;
use crate::store::{Append, AppendOutcome, Guard, Head, LeaseChange, StateStore};

/// How often a request is appended against a log that grows meanwhile.
const MAX_CONFLICTS: u32 = 64;

/// What is asked of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// To stop at the next step boundary.
    Interrupt,
    /// To stop at once.
    Abort,
}

impl SessionOverview {
    /// The request of this kind that no run has honoured yet.
    #[must_use]
    pub fn request(&self, kind: RequestKind) -> Option<&Request> {
        match kind {
            RequestKind::Interrupt => self.interrupt_request(),
            RequestKind::Abort => self.abort_request(),
        }
    }

    /// Returns `true` if the session was asked for this before, or need not be asked any more.
    #[must_use]
    pub fn knows_request(&self, id: &RequestId) -> bool {
        self.fold_state.requests.contains(id)
    }

    /// The interrupt that an explicit resume cleared last. Children that it was passed down to are resumed
    /// with the session.
    #[must_use]
    pub fn cleared_interrupt(&self) -> Option<&RequestId> {
        self.fold_state.cleared.as_ref()
    }

    /// The interrupt that ended a run last.
    #[must_use]
    pub fn honoured_interrupt(&self) -> Option<&RequestId> {
        self.fold_state.honoured.as_ref()
    }
}

/// Where requests are appended, and with whose ids.
#[derive(Debug, Clone, Copy)]
pub struct Outside<'a> {
    /// The store; a [`RetryingStore`](crate::store::RetryingStore), if it may be away for a moment.
    pub store: &'a dyn StateStore,
    /// Fresh ids.
    pub ids: &'a dyn IdSource,
    /// What the process remembers of the logs, if it does.
    pub folds: Option<&'a SessionCache>,
}

/// Asks a run to stop. Its owner honours the request with its next append, or sooner if it hears
/// of it; if the owner is dead, the run that takes over does. Returns the sessions that were asked: this
/// one and those below it.
///
/// # Errors
/// [`ErrorCode::SessionNotFound`], [`ErrorCode::NothingToResume`] if the run (or, without one
/// named, every run) has ended, and the store's.
pub async fn request(
    outside: Outside<'_>,
    session: &SessionId,
    run: Option<&RunId>,
    kind: RequestKind,
    reason: Option<String>,
) -> Result<Vec<SessionId>> {
    let request = Request { id: outside.ids.request(), reason };
    ask(outside, session, run, kind, &request).await
}

async fn ask(
    outside: Outside<'_>,
    session: &SessionId,
    run: Option<&RunId>,
    kind: RequestKind,
    request: &Request,
) -> Result<Vec<SessionId>> {
    let mut children = Vec::new();
    let ask = |fold: &SessionOverview| {
        children = reached_by(fold, kind).collect();
        if fold.knows_request(&request.id) {
            return Ok(None);
        }
        let current = fold.current_run().map(|current| &current.id);
        let Some(current) = current.filter(|current| run.is_none_or(|run| run == *current)) else {
            return Err(Error::new(ErrorCode::NothingToResume, "the run has ended already")
                .with_context("session", session));
        };
        let (run, Request { id: request, reason }) = (current.clone(), request.clone());
        let event = match kind {
            RequestKind::Interrupt => Event::InterruptRequested { request, run, reason },
            RequestKind::Abort => Event::AbortRequested { request, run, reason },
        };
        Ok(Some((event, Guard::None)))
    };
    outside.append(session, ask).await?;
    let mut asked = pass_down(outside, &children, kind, request).await;
    asked.push(session.clone());
    Ok(asked)
}

/// The sessions right below one that a request to it is for as well.
fn reached_by(fold: &SessionOverview, kind: RequestKind) -> impl Iterator<Item = SessionId> {
    let open = fold.open_children().map(|child| &child.session);
    let stay = fold.companions().map(|(_, record)| &record.start.session);
    // Those that stay work on when their parent is interrupted.
    let stay = stay.filter(move |_| kind == RequestKind::Abort);
    open.chain(stay).cloned()
}

/// Asks children what their parent was asked, under the same id. So each has it once, by whomever it is
/// passed down: whoever asked may have died before it could. One that cannot be reached is met by the
/// run that waits for it. Returns the sessions that were asked.
pub async fn pass_down(
    outside: Outside<'_>,
    children: &[SessionId],
    kind: RequestKind,
    request: &Request,
) -> Vec<SessionId> {
    let mut asked = Vec::new();
    for child in children {
        match Box::pin(ask(outside, child, None, kind, request)).await {
            Ok(below) => asked.extend(below),
            Err(error)
                if matches!(
                    error.code(),
                    ErrorCode::NothingToResume | ErrorCode::SessionNotFound
                ) => {}
            Err(error) => tracing::warn!(session = %child, %error, "a request was not passed down"),
        }
    }
    asked
}

/// Puts a message into a session: it enters the transcript between two steps, and a turn does not
/// complete before. Under the same `request` it is queued once.
///
/// # Errors
/// [`ErrorCode::SessionNotFound`], and the store's.
pub async fn queue_message(
    outside: Outside<'_>,
    session: &SessionId,
    request: &RequestId,
    message: &UserMessage,
    from: Option<&ChildNotice>,
) -> Result<()> {
    let queue = |fold: &SessionOverview| {
        let known = fold.knows_message(request);
        let (request, message, from) = (request.clone(), message.clone(), from.cloned());
        Ok((!known).then_some((Event::MessageQueued { request, message, from }, Guard::None)))
    };
    outside.append(session, queue).await
}

impl<'a> Outside<'a> {
    /// The logs that requests go into.
    pub(super) fn logs(self) -> SessionReader<'a> {
        SessionReader { store: self.store, folds: self.folds }
    }

    /// Appends what `ask` makes of the session as it is then; nothing, if it makes nothing.
    pub(super) async fn append(
        self,
        session: &SessionId,
        mut ask: impl FnMut(&SessionOverview) -> Result<Option<(Event, Guard)>> + Send,
    ) -> Result<()> {
        let mut fold = self.logs().overview(session).await?;
        for _ in 0..MAX_CONFLICTS {
            let head = head(self.store, session).await?;
            fold.observe(head.read_at);
            let Some((event, guard)) = ask(&fold)? else { return Ok(()) };
            let expected = fold.position().clone();
            let before = fold.clone();
            // Folding first keeps a request that is known already, or void, out of the log.
            fold.apply(&event, None)?;
            let append = Append {
                session: session.clone(),
                expected,
                id: self.ids.append(),
                run: None,
                schema: SCHEMA,
                count: 1,
                body: encode(&[event])?,
                summary: Some(fold.summary()),
                usage: (!Arc::ptr_eq(fold.own_usage(), before.own_usage()))
                    .then(|| fold.own_usage().bounded()),
                lease: LeaseChange::Keep,
                guard,
            };
            fault::point("request.before_append");
            match self.store.append(append).await? {
                AppendOutcome::Appended { .. } => {
                    fault::point("request.after_append");
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
                AppendOutcome::HistoryLost => {
                    let message = "the store lost what it had acknowledged";
                    return Err(Error::new(ErrorCode::HistoryLost, message)
                        .with_context("session", session));
                }
            }
        }
        Err(Error::new(ErrorCode::StoreBusy, "others append to the session without pause")
            .with_context("session", session))
    }
}

pub(super) async fn head(store: &dyn StateStore, session: &SessionId) -> Result<Head> {
    store.head(session).await?.ok_or_else(|| not_found(session))
}
