//! Submissions: answers to pending calls.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::request::{RequestContext, head};
use super::{SessionReader, log_events, tree};
use crate::clock::IdSourceExt as _;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{Answer, Event, PendingCall, PendingKind};
use crate::id::{CallId, RequestId, SessionId};
use crate::json::Json;
use crate::machine::session::{ResolvedCall, SessionOverview};
use crate::mutant;
use crate::schema::Schema;
use crate::store::{Guard, SessionStatus};
use crate::trace::TraceParent;

/// A reference to a call of a session in a tree. Its text form is the call's id, or `session#call`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRef {
    /// The session that made the call. If `None`, the only session of the tree in which such a call
    /// is pending.
    pub session: Option<SessionId>,
    /// The call's id.
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

/// An answer to a pending call.
///
/// # Examples
///
/// ```
/// use helix_agents_core::session::Submission;
///
/// let approval = Submission::approve("1.0").by("ann");
/// let denial = Submission::deny("1.0", "too expensive".to_owned());
/// let weather = Submission::result("1.1", &"rain")?;
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    call: CallRef,
    answer: Answer,
    by: Option<String>,
    digest: Option<String>,
    request: Option<RequestId>,
    trace: Option<TraceParent>,
    required_tags: BTreeMap<String, String>,
}

impl Submission {
    fn new(call: impl Into<CallRef>, answer: Answer) -> Self {
        Self {
            call: call.into(),
            answer,
            by: None,
            digest: None,
            request: None,
            trace: None,
            required_tags: BTreeMap::new(),
        }
    }

    /// Creates the result of a client tool.
    ///
    /// # Errors
    /// Returns [`ErrorCode::AnswerInvalid`] if the result cannot be written as JSON.
    pub fn result(call: impl Into<CallRef>, result: &(impl Serialize + ?Sized)) -> Result<Self> {
        let result = Json::from_serialize(result).map_err(|error| {
            Error::new(ErrorCode::AnswerInvalid, "the result is not JSON").with_source(error)
        })?;
        Ok(Self::new(call, Answer::Returned(result)))
    }

    /// Creates the failure of a client tool. The model receives the message.
    pub fn error(call: impl Into<CallRef>, message: impl Into<String>) -> Self {
        Self::new(call, Answer::Error(message.into()))
    }

    /// Creates an approval of the call.
    pub fn approve(call: impl Into<CallRef>) -> Self {
        Self::new(call, Answer::Approved { edited: None })
    }

    /// Creates an approval with edited arguments, if the call's tool allows that.
    ///
    /// # Errors
    /// Returns [`ErrorCode::AnswerInvalid`] if the arguments cannot be written as JSON.
    pub fn approve_edited(
        call: impl Into<CallRef>,
        arguments: &(impl Serialize + ?Sized),
    ) -> Result<Self> {
        let edited = Json::from_serialize(arguments).map_err(|error| {
            Error::new(ErrorCode::AnswerInvalid, "the arguments are not JSON").with_source(error)
        })?;
        Ok(Self::new(call, Answer::Approved { edited: Some(edited) }))
    }

    /// Creates a denial of the call. The model receives the reason.
    pub fn deny(call: impl Into<CallRef>, reason: impl Into<Option<String>>) -> Self {
        Self::new(call, Answer::Denied { reason: reason.into() })
    }

    /// Sets the name of the user who answers, which is shown in the log.
    #[must_use]
    pub fn by(mut self, who: impl Into<String>) -> Self {
        self.by = Some(who.into());
        self
    }

    /// Sets the digest of the arguments that the answer is for. If the call has other arguments,
    /// nothing is recorded.
    #[must_use]
    pub fn digest(mut self, digest: impl Into<String>) -> Self {
        self.digest = Some(digest.into());
        self
    }

    /// Sets the id of the answer. Submitting an answer to the same call again under the same id
    /// succeeds and records nothing. Use a different id for each call: the id is not compared
    /// across calls. Default: a generated one.
    #[must_use]
    pub fn request(mut self, request: impl Into<RequestId>) -> Self {
        self.request = Some(request.into());
        self
    }

    /// Sets the trace of the caller, which the log keeps with the answer.
    #[must_use]
    pub fn trace(mut self, trace: TraceParent) -> Self {
        self.trace = Some(trace);
        self
    }

    /// Requires a label of the root session. A session without it is reported as not found, and nothing is
    /// recorded. The check and the append are atomic.
    #[must_use]
    pub fn required_tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.required_tags.insert(key.into(), value.into());
        self
    }

    /// Returns the reference to the call.
    #[must_use]
    pub fn call(&self) -> &CallRef {
        &self.call
    }

    /// Returns the answer itself.
    #[must_use]
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Returns the digest of the arguments that the answer is for, if one was set.
    #[must_use]
    pub fn arguments_digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// Returns the id of the answer, if one was set.
    #[must_use]
    pub fn request_id(&self) -> Option<&RequestId> {
        self.request.as_ref()
    }
}

/// Records an answer. If several answers are submitted for one call, exactly one is accepted. This
/// does not continue the session: `resume` does.
///
/// Returns the session that the call belongs to: `root` or one of its descendants.
///
/// # Errors
/// Returns [`ErrorCode::CallNotFound`], [`ErrorCode::AlreadyAnswered`],
/// [`ErrorCode::AnswerExpired`], [`ErrorCode::AnswerToAborted`], [`ErrorCode::AnswerWrongKind`],
/// [`ErrorCode::AnswerInvalid`], [`ErrorCode::ArgumentsChanged`], [`ErrorCode::NotRoot`] for a
/// child's session, [`ErrorCode::InputInvalid`] if calls of several sessions have this id and the
/// reference names no session, [`ErrorCode::SessionNotFound`], and the errors of the store.
///
/// # Durability
/// When the function returns, the answer is in the log.
pub async fn submit(
    request_context: RequestContext<'_>,
    root: &SessionId,
    submission: &Submission,
) -> Result<SessionId> {
    let request_context = request_context.requiring(&submission.required_tags);
    let owner = owner(request_context.logs(), root, &submission.call).await?;
    let request = submission.request.clone().unwrap_or_else(|| request_context.ids.request());
    let event = |fold: &SessionOverview| {
        evaluate(fold, submission, &request).map_err(|error| {
            error.with_context("session", fold.id()).with_context("call", &submission.call.call)
        })
    };
    request_context.append(&owner, event).await?;
    Ok(owner)
}

/// Evaluates the answer against the session's current state. Returns the event to append, or `None`
/// if the same answer was recorded before.
fn evaluate(
    fold: &SessionOverview,
    submission: &Submission,
    request: &RequestId,
) -> Result<Option<(Event, Guard)>> {
    let call = &submission.call.call;
    let pending = fold.open_step().and_then(|step| step.call(call)).and_then(|call| call.pending());
    let again =
        fold.open_step().and_then(|step| step.call(call)).filter(|call| call.finish.is_none());
    let again = again.and_then(|call| call.waiting.as_ref()).map(|waiting| &waiting.on);
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
        trace: submission.trace,
    };
    Ok(Some((event, guard)))
}

/// Returns the error for a call that is not pending, with the reason.
pub(super) fn refusal(
    fold: &SessionOverview,
    call: &CallId,
    settled: Option<&ResolvedCall>,
) -> Error {
    let (code, message) = match settled {
        Some(ResolvedCall::Answered(_)) => {
            (ErrorCode::AlreadyAnswered, "the call has already been answered")
        }
        Some(ResolvedCall::Expired) => {
            (ErrorCode::AnswerExpired, "the call's deadline had passed when the answer came")
        }
        Some(ResolvedCall::Dropped) if fold.status() == SessionStatus::Aborted => {
            (ErrorCode::AnswerToAborted, "the run was aborted: the call is no longer pending")
        }
        Some(ResolvedCall::Dropped) => {
            (ErrorCode::AlreadyAnswered, "the call has its result already")
        }
        None if fold.may_have_call(call) => (ErrorCode::CallNotFound, "the call is not pending"),
        None => (ErrorCode::CallNotFound, "there is no such call"),
    };
    Error::new(code, message)
}

fn check(fold: &SessionOverview, pending: &PendingCall, submission: &Submission) -> Result<()> {
    if submission.digest.as_ref().is_some_and(|digest| *digest != pending.digest) {
        let message = "the arguments of the call have changed since they were shown; read the \
                       pending call again, and answer it";
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
            let message =
                "the arguments of this call cannot be edited; approve or deny it as it is";
            return Err(Error::new(ErrorCode::AnswerInvalid, message));
        }
        _ => return Ok(()),
    };
    let Some(schema) = &pending.schema else { return Ok(()) };
    match Schema::from_value(schema.to_value())?.outline(&given.to_value()) {
        None => Ok(()),
        Some(outline) => {
            log_events::validation_failed(fold, pending);
            let message = format!("the answer does not match the schema: {outline}");
            Err(Error::new(ErrorCode::AnswerInvalid, message))
        }
    }
}

/// Returns the session of the tree that made the call.
pub(super) async fn owner(
    logs: SessionReader<'_>,
    root: &SessionId,
    call: &CallRef,
) -> Result<SessionId> {
    let top = head(logs.store, root).await?;
    if top.created.root != *root {
        let message = "the session is a child: answers go to its root";
        return Err(Error::new(ErrorCode::NotRoot, message)
            .with_context("session", root)
            .with_context("root", &top.created.root));
    }
    if let Some(named) = &call.session {
        let head = head(logs.store, named).await?;
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
    for fold in tree::overviews(logs, root).await? {
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
                "several sessions wait for an answer to a call with this id; write it as \
                 `session#call`: {}",
                sessions.join(", ")
            );
            Err(Error::new(ErrorCode::InputInvalid, message).with_context("call", call))
        }
    }
}
