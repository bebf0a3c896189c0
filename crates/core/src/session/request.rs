//! Requests from outside: appended by any process to the log of a run that another one owns.

use super::Session;
use super::repeat::repeated;
use crate::clock::{Clock, IdSource};
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Event, SCHEMA, encode};
use crate::fault;
use crate::id::{RunId, SessionId};
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

/// Asks a run to stop. The owner meets the request with its next append, or sooner if it hears
/// of it.
///
/// # Errors
/// [`ErrorCode::SessionNotFound`], [`ErrorCode::NothingToResume`] if the run (or, without one
/// named, every run) has ended, and the store's.
pub async fn request(
    store: &dyn StateStore,
    ids: &dyn IdSource,
    clock: &dyn Clock,
    session: &SessionId,
    run: Option<&RunId>,
    kind: RequestKind,
    reason: Option<String>,
) -> Result<()> {
    let request = ids.request();
    let mut fold: Option<Session> = None;
    for _ in 0..MAX_CONFLICTS {
        let head = head(store, session).await?;
        let current =
            head.summary.run.clone().filter(|current| run.is_none_or(|run| run == current));
        let Some(current) = current else {
            return Err(Error::new(ErrorCode::NothingToResume, "the run has ended already")
                .with_context("session", session));
        };
        let (run, request, reason) = (current, request.clone(), reason.clone());
        let event = match kind {
            RequestKind::Interrupt => Event::InterruptRequested { request, run, reason },
            RequestKind::Abort => Event::AbortRequested { request, run, reason },
        };
        // Folding first keeps a request that is known already, or void, out of the log.
        let fold = match &mut fold {
            Some(fold) => fold,
            none => none.insert(super::load(store, session).await?),
        };
        advance(store, fold).await?;
        fold.check(&event, None, false)?;
        let append = Append {
            session: session.clone(),
            expected: fold.position().clone(),
            id: ids.append(),
            run: None,
            schema: SCHEMA,
            count: 1,
            body: encode(&[event])?,
            summary: None,
            lease: LeaseChange::Keep,
            guard: Guard::None,
        };
        fault::point("request.before_append");
        match repeated(ids, clock, || store.append(append.clone())).await? {
            AppendOutcome::Appended { .. } => return Ok(()),
            AppendOutcome::Conflict { .. } => {}
            AppendOutcome::GuardFailed { .. } | AppendOutcome::HistoryLost => {
                let message = "the store lost what it had acknowledged";
                return Err(
                    Error::new(ErrorCode::HistoryLost, message).with_context("session", session)
                );
            }
        }
    }
    Err(Error::new(ErrorCode::StoreBusy, "others append to the session without pause")
        .with_context("session", session))
}

async fn advance(store: &dyn StateStore, fold: &mut Session) -> Result<()> {
    let session = fold.id().clone();
    for append in store.read_log(&session, fold.position().version, u32::MAX).await? {
        fold.apply_append(&append)?;
    }
    Ok(())
}

async fn head(store: &dyn StateStore, session: &SessionId) -> Result<Head> {
    store.head(session).await?.ok_or_else(|| {
        Error::new(ErrorCode::SessionNotFound, "there is no session of this id")
            .with_context("session", session)
    })
}
