//! Answers to calls that wait for people.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::request::{Outside, head};
use super::{ResolvedCall, SessionOverview, SessionReader, tree};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Answer, Event, PendingCall, PendingKind};
use crate::id::{CallId, RequestId, SessionId};
use crate::json::Json;
use crate::mutant;
use crate::schema::Schema;
use crate::store::{Guard, SessionStatus};

/// A call of some session of a tree. As text it is the call's id, or `session#call`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRef {
    /// The session that made it. Without it, the only one of the tree in which such a call waits.
    pub session: Option<SessionId>,
    /// The call.
    pub call: CallId,
}

impl From<CallId> for CallRef {
    fn from(call: CallId) -> Self {
        Self { session: None, call }
    }
}

impl From<&CallId> for CallRef {
    fn from(call: &CallId) -> Self {
        Self::from(call.clone())
    }
}

impl From<&str> for CallRef {
    fn from(text: &str) -> Self {
        match text.rsplit_once('#') {
            Some((session, call)) => Self { session: Some(session.into()), call: call.into() },
            None => Self { session: None, call: text.into() },
        }
    }
}

impl fmt::Display for CallRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.session {
            Some(session) => write!(f, "{session}#{}", self.call),
            None => self.call.fmt(f),
        }
    }
}

/// An answer to a call that waits for people.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    call: CallRef,
    answer: Answer,
    by: Option<String>,
    digest: Option<String>,
    request: Option<RequestId>,
}

impl Submission {
    fn new(call: impl Into<CallRef>, answer: Answer) -> Self {
        Self { call: call.into(), answer, by: None, digest: None, request: None }
    }

    /// The result of a client tool.
    ///
    /// # Errors
    /// [`ErrorCode::AnswerInvalid`] if it is not JSON.
    pub fn result(call: impl Into<CallRef>, result: &(impl Serialize + ?Sized)) -> Result<Self> {
        let result = Json::from_serialize(result).map_err(|error| {
            Error::new(ErrorCode::AnswerInvalid, "the result is not JSON").with_source(error)
        })?;
        Ok(Self::new(call, Answer::Returned(result)))
    }

    /// A client tool failed; the model reads the message.
    pub fn error(call: impl Into<CallRef>, message: impl Into<String>) -> Self {
        Self::new(call, Answer::Error(message.into()))
    }

    /// The call may run.
    pub fn approve(call: impl Into<CallRef>) -> Self {
        Self::new(call, Answer::Approved { edited: None })
    }

    /// The call may run with these arguments instead, if its tool allows that.
    ///
    /// # Errors
    /// [`ErrorCode::AnswerInvalid`] if they are not JSON.
    pub fn approve_edited(
        call: impl Into<CallRef>,
        arguments: &(impl Serialize + ?Sized),
    ) -> Result<Self> {
        let edited = Json::from_serialize(arguments).map_err(|error| {
            Error::new(ErrorCode::AnswerInvalid, "the arguments are not JSON").with_source(error)
        })?;
        Ok(Self::new(call, Answer::Approved { edited: Some(edited) }))
    }

    /// The call must not run; the model reads the reason.
    pub fn deny(call: impl Into<CallRef>, reason: impl Into<Option<String>>) -> Self {
        Self::new(call, Answer::Denied { reason: reason.into() })
    }

    /// Who answers, for people who read the log.
    #[must_use]
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.by = Some(who.into());
        self
    }

    /// The digest of the arguments that the answer was given to: if the call has others, nothing is
    /// recorded.
    #[must_use]
    pub fn digest(mut self, digest: impl Into<String>) -> Self {
        self.digest = Some(digest.into());
        self
    }

    /// An id of the answer: submitted again under it, it is taken for the same.
    #[must_use]
    pub fn request(mut self, request: impl Into<RequestId>) -> Self {
        self.request = Some(request.into());
        self
    }

    /// The call.
    #[must_use]
    pub fn call(&self) -> &CallRef {
        &self.call
    }
}

/// Records an answer. Of several for one call exactly one is taken. It does not go on with the
/// session: `resume` does.
///
/// Returns the session that the call belongs to: `root`, or one below it.
///
/// # Errors
/// [`ErrorCode::CallNotFound`], [`ErrorCode::AlreadyAnswered`], [`ErrorCode::AnswerExpired`],
/// [`ErrorCode::AnswerToAborted`], [`ErrorCode::AnswerWrongKind`], [`ErrorCode::AnswerInvalid`],
/// [`ErrorCode::ArgumentsChanged`], [`ErrorCode::NotRoot`] for a child's session,
/// [`ErrorCode::SessionNotFound`], and the store's.
///
/// # Durability
/// When it returns, the answer is in the log.
pub async fn submit(
    outside: Outside<'_>,
    root: &SessionId,
    submission: &Submission,
) -> Result<SessionId> {
    let owner = owner(outside, root, &submission.call).await?;
    let request = submission.request.clone().unwrap_or_else(|| outside.ids.request());
    let judged = |fold: &SessionOverview| {
        let judged = judge(fold, submission, &request);
        judged.map_err(|error| {
            error.with_context("session", fold.id()).with_context("call", &submission.call.call)
        })
    };
    outside.append(&owner, judged).await?;
    tracing::info!(session = %owner, call = %submission.call.call, "client_tool.submitted");
    Ok(owner)
}

/// What the answer is to the session as it is now: an event, or what was recorded before.
fn judge(
    fold: &SessionOverview,
    submission: &Submission,
    request: &RequestId,
) -> Result<Option<(Event, Guard)>> {
    let call = &submission.call.call;
    let pending = fold.open_step().and_then(|step| step.call(call)).and_then(|it| it.pending());
    let again = fold.open_step().and_then(|step| step.call(call)).filter(|it| it.finish.is_none());
    let again = again.and_then(|it| it.waiting.as_ref()).map(|waiting| &waiting.on);
    let Some(pending) = pending.or(again.filter(|_| mutant!("answered-twice"))) else {
        return match fold.settled_call(call) {
            Some(ResolvedCall::Answered(other)) if other == request => Ok(None),
            settled => Err(refusal(fold, call, settled)),
        };
    };
    let is_late = pending.deadline.is_some_and(|deadline| fold.clock() > deadline);
    if is_late && !mutant!("deadline-ignored") {
        return Err(refusal(fold, call, Some(&ResolvedCall::Expired)));
    }
    check(fold, pending, submission)?;
    let deadline = pending.deadline.filter(|_| !mutant!("deadline-ignored"));
    let guard = deadline.map_or(Guard::None, Guard::NotAfter);
    let event = Event::Submitted {
        request: request.clone(),
        call: call.clone(),
        answer: submission.answer.clone(),
        by: submission.by.clone(),
    };
    Ok(Some((event, guard)))
}

fn refusal(fold: &SessionOverview, call: &CallId, settled: Option<&ResolvedCall>) -> Error {
    let (code, message) = match settled {
        Some(ResolvedCall::Answered(_)) => {
            (ErrorCode::AlreadyAnswered, "somebody else answered the call first")
        }
        Some(ResolvedCall::Expired) => {
            (ErrorCode::AnswerExpired, "the call's deadline had passed when the answer came")
        }
        Some(ResolvedCall::Dropped) if fold.status() == SessionStatus::Aborted => {
            (ErrorCode::AnswerToAborted, "the run was aborted: nobody waits for the answer")
        }
        Some(ResolvedCall::Dropped) => {
            (ErrorCode::AlreadyAnswered, "the call has its result already")
        }
        None if fold.may_have_made(call) => {
            (ErrorCode::CallNotFound, "the call does not wait for people")
        }
        None => (ErrorCode::CallNotFound, "there is no such call"),
    };
    Error::new(code, message)
}

fn check(fold: &SessionOverview, pending: &PendingCall, submission: &Submission) -> Result<()> {
    if submission.digest.as_ref().is_some_and(|digest| *digest != pending.digest) {
        let message = "the answer was given to other arguments than the call has";
        return Err(Error::new(ErrorCode::ArgumentsChanged, message));
    }
    if !submission.answer.fits(pending.kind) {
        let message = match pending.kind {
            PendingKind::Client => "the call waits for a result, not for an approval",
            PendingKind::Approval { .. } => "the call waits for an approval, not for a result",
        };
        return Err(Error::new(ErrorCode::AnswerWrongKind, message));
    }
    let given = match (&submission.answer, pending.kind) {
        (Answer::Returned(result), _) => result,
        (Answer::Approved { edited: Some(edited) }, PendingKind::Approval { editable: true }) => {
            edited
        }
        (Answer::Approved { edited: Some(_) }, _) => {
            let message = "the tool does not allow that its arguments are changed";
            return Err(Error::new(ErrorCode::AnswerInvalid, message));
        }
        _ => return Ok(()),
    };
    let Some(schema) = &pending.schema else { return Ok(()) };
    match Schema::from_value(schema.to_value())?.outline(&given.to_value()) {
        None => Ok(()),
        Some(outline) => {
            let (session, call) = (fold.id(), &pending.call);
            tracing::warn!(%session, %call, "client_tool.validation_failed");
            let message = format!("the answer does not fit: {outline}");
            Err(Error::new(ErrorCode::AnswerInvalid, message))
        }
    }
}

/// The session of the tree that made the call.
async fn owner(outside: Outside<'_>, root: &SessionId, call: &CallRef) -> Result<SessionId> {
    let top = head(outside.store, root).await?;
    if top.created.root != *root {
        let message = "the session is a child: answers go to its root";
        return Err(Error::new(ErrorCode::NotRoot, message)
            .with_context("session", root)
            .with_context("root", &top.created.root));
    }
    if let Some(named) = &call.session {
        let head = head(outside.store, named).await?;
        if head.created.root == *root {
            return Ok(named.clone());
        }
        let message = "the session of the call does not belong to this root";
        return Err(Error::new(ErrorCode::CallNotFound, message)
            .with_context("session", root)
            .with_context("call", call));
    }
    let mut waiting = Vec::new();
    let mut known = Vec::new();
    for fold in tree::overviews(outside.logs(), root).await? {
        if fold.pending_calls().any(|pending| pending.call == call.call) {
            waiting.push(fold.id().clone());
        } else if fold.settled_call(&call.call).is_some() {
            known.push(fold.id().clone());
        }
    }
    match (waiting.as_slice(), known.last()) {
        ([only], _) => Ok(only.clone()),
        ([], Some(known)) => Ok(known.clone()),
        ([], None) => Ok(root.clone()),
        (several, _) => {
            let sessions: Vec<_> = several.iter().map(SessionId::as_str).collect();
            let message = format!(
                "several sessions wait for an answer to a call of this id; write it as \
                 `session#call`: {}",
                sessions.join(", ")
            );
            Err(Error::new(ErrorCode::InputInvalid, message).with_context("call", call))
        }
    }
}

/// A call that waits for people, as whoever answers has to see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PendingView {
    /// The session that made it.
    pub session: SessionId,
    /// Its agent's name.
    pub agent: Arc<str>,
    /// What it waits for.
    #[serde(flatten)]
    pub pending: Arc<PendingCall>,
    /// The arguments as the model wrote them.
    pub arguments: Json,
    /// Since when it waits, by the store's clock.
    pub since: Option<Timestamp>,
}

impl PendingView {
    /// How a [`Submission`] names it.
    #[must_use]
    pub fn reference(&self) -> CallRef {
        CallRef { session: Some(self.session.clone()), call: self.pending.call.clone() }
    }
}

/// The calls of a session and those below it that wait for people, oldest session first.
///
/// # Errors
/// [`ErrorCode::SessionNotFound`], and the store's.
pub async fn pending_calls(logs: SessionReader<'_>, root: &SessionId) -> Result<Vec<PendingView>> {
    head(logs.store, root).await?;
    let mut views = Vec::new();
    for fold in tree::overviews(logs, root).await?.into_iter().rev() {
        let Some(step) = fold.open_step() else { continue };
        for (call, state) in step.pairs() {
            let Some(pending) = state.pending() else { continue };
            views.push(PendingView {
                session: fold.id().clone(),
                agent: Arc::clone(fold.agent()),
                pending: Arc::clone(pending),
                arguments: call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object),
                since: state.waiting.as_ref().and_then(|waiting| waiting.since),
            });
        }
    }
    Ok(views)
}
