//! Requests from outside: appended by any process to the log of a run that another one owns.

use super::Session;
use super::repeat::repeated;
use crate::clock::{Clock, IdSource};
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

/// Where requests are appended, and with whose ids and clock.
#[derive(Debug, Clone, Copy)]
pub struct Outside<'a> {
    /// The store.
    pub store: &'a dyn StateStore,
    /// Fresh ids.
    pub ids: &'a dyn IdSource,
    /// For waits between tries.
    pub clock: &'a dyn Clock,
}

/// Asks a run to stop. The owner meets the request with its next append, or sooner if it hears
/// of it.
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
) -> Result<()> {
    let request = outside.ids.request();
    let mut children = Vec::new();
    let ask = |fold: &Session| {
        children = fold.open_children().map(|child| child.session.clone()).collect();
        if kind == RequestKind::Abort {
            // Those that stay work on when their parent is interrupted.
            children.extend(fold.companions().map(|(_, record)| record.start.session.clone()));
        }
        let current = fold.current_run().map(|current| &current.id);
        let Some(current) = current.filter(|current| run.is_none_or(|run| run == *current)) else {
            return Err(Error::new(ErrorCode::NothingToResume, "the run has ended already")
                .with_context("session", session));
        };
        let (run, request, reason) = (current.clone(), request.clone(), reason.clone());
        let event = match kind {
            RequestKind::Interrupt => Event::InterruptRequested { request, run, reason },
            RequestKind::Abort => Event::AbortRequested { request, run, reason },
        };
        Ok(Some((event, Guard::None)))
    };
    outside.append(session, ask).await?;
    for child in children {
        pass_down(outside, &child, kind, reason.clone()).await;
    }
    Ok(())
}

/// Asks a child to stop as well. One that cannot be reached is met by the run that waits for it.
pub async fn pass_down(
    outside: Outside<'_>,
    child: &SessionId,
    kind: RequestKind,
    reason: Option<String>,
) {
    match Box::pin(request(outside, child, None, kind, reason)).await {
        Ok(()) => {}
        Err(error)
            if matches!(error.code(), ErrorCode::NothingToResume | ErrorCode::SessionNotFound) => {}
        Err(error) => tracing::warn!(session = %child, %error, "a request was not passed down"),
    }
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
    let queue = |fold: &Session| {
        let known = fold.knows_message(request);
        let (request, message, from) = (request.clone(), message.clone(), from.cloned());
        Ok((!known).then_some((Event::MessageQueued { request, message, from }, Guard::None)))
    };
    outside.append(session, queue).await
}

impl Outside<'_> {
    /// Appends what `ask` makes of the session as it is then; nothing, if it makes nothing.
    pub(super) async fn append(
        self,
        session: &SessionId,
        mut ask: impl FnMut(&Session) -> Result<Option<(Event, Guard)>> + Send,
    ) -> Result<()> {
        let mut fold = super::load(self.store, session).await?;
        for _ in 0..MAX_CONFLICTS {
            let head = head(self.store, session).await?;
            fold.observe(head.read_at);
            let Some((event, guard)) = ask(&fold)? else { return Ok(()) };
            let expected = fold.position().clone();
            let savepoint = fold.savepoint();
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
                lease: LeaseChange::Keep,
                guard,
            };
            fault::point("request.before_append");
            let sent = repeated(self.ids, self.clock, || self.store.append(append.clone()));
            match sent.await? {
                AppendOutcome::Appended { .. } => {
                    fault::point("request.after_append");
                    return Ok(());
                }
                AppendOutcome::Conflict { .. } => {
                    fold.rollback(savepoint);
                    advance(self.store, &mut fold).await?;
                }
                AppendOutcome::GuardFailed { now, .. } => {
                    fold.rollback(savepoint);
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

async fn advance(store: &dyn StateStore, fold: &mut Session) -> Result<()> {
    let session = fold.id().clone();
    for append in store.read_log(&session, fold.position().version, u32::MAX).await? {
        fold.apply_append(&append)?;
    }
    Ok(())
}

pub(super) async fn head(store: &dyn StateStore, session: &SessionId) -> Result<Head> {
    store.head(session).await?.ok_or_else(|| {
        Error::new(ErrorCode::SessionNotFound, "there is no session of this id")
            .with_context("session", session)
    })
}
