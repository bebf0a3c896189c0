//! Pending calls, as users see them.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::request::head;
use super::submit::{CallRef, owner, refusal};
use super::{SessionReader, tree};
use crate::clock::Timestamp;
use crate::error::Result;
use crate::event::{PendingCall, PendingKind};
use crate::id::{CallId, SessionId};
use crate::json::Json;
use crate::machine::session::SessionOverview;
use crate::store::{SessionFilter, list_all};

/// A pending call with the data that a user needs to answer it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PendingCallView {
    #[serde(serialize_with = "as_text")]
    reference: CallRef,
    /// The root session, to which answers go and which is the one to resume.
    pub root: SessionId,
    /// Whether the deadline has passed. The next resume handles that.
    pub expired: bool,
    /// The session that made the call.
    pub session: SessionId,
    /// The name of the session's agent.
    pub agent: Arc<str>,
    /// The pending call.
    #[serde(flatten)]
    pub pending: Arc<PendingCall>,
    /// The arguments as the model wrote them.
    pub arguments: Json,
    /// The time at which the call became pending, by the store's clock.
    pub since: Option<Timestamp>,
}

impl PendingCallView {
    /// Returns the reference to use in a [`Submission`](super::Submission).
    #[must_use]
    pub fn reference(&self) -> CallRef {
        self.reference.clone()
    }

    /// Returns the pending calls of a session. `now` is the time by the store's clock.
    fn of_session(fold: &SessionOverview, root: &SessionId, now: Timestamp) -> Vec<Self> {
        let Some(step) = fold.open_step() else { return Vec::new() };
        let views = step.pairs().filter_map(|(call, state)| {
            let pending = state.pending()?;
            Some(Self {
                reference: CallRef { session: Some(fold.id().clone()), call: pending.call.clone() },
                root: root.clone(),
                expired: pending.deadline.is_some_and(|deadline| now > deadline),
                session: fold.id().clone(),
                agent: Arc::clone(fold.agent()),
                pending: Arc::clone(pending),
                arguments: call.arguments.as_json().cloned().unwrap_or_else(Json::empty_object),
                since: state.waiting.as_ref().and_then(|waiting| waiting.since),
            })
        });
        views.collect()
    }
}

fn as_text<S: Serializer>(reference: &CallRef, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(reference)
}

/// The members of a [`PendingCallView`], all in one struct: raw JSON cannot be read through `#[serde(flatten)]`.
#[derive(Deserialize)]
struct Members {
    reference: String,
    root: SessionId,
    expired: bool,
    session: SessionId,
    agent: Arc<str>,
    call: CallId,
    tool: Arc<str>,
    kind: PendingKind,
    digest: String,
    #[serde(default)]
    deadline: Option<Timestamp>,
    #[serde(default)]
    schema: Option<Json>,
    arguments: Json,
    #[serde(default)]
    since: Option<Timestamp>,
}

impl<'de> Deserialize<'de> for PendingCallView {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = Members::deserialize(deserializer)?;
        let Members { call, tool, kind, digest, deadline, schema, .. } = members;
        Ok(Self {
            reference: CallRef::from(members.reference.as_str()),
            root: members.root,
            expired: members.expired,
            session: members.session,
            agent: members.agent,
            pending: Arc::new(PendingCall { call, tool, kind, digest, deadline, schema }),
            arguments: members.arguments,
            since: members.since,
        })
    }
}

/// Returns the pending calls of a root session and its descendants, oldest session first. For a
/// child session, the list is empty.
///
/// # Errors
/// Returns [`ErrorCode::SessionNotFound`](crate::error::ErrorCode::SessionNotFound), and the errors
/// of the store.
pub async fn pending_calls(
    logs: SessionReader<'_>,
    root: &SessionId,
) -> Result<Vec<PendingCallView>> {
    let now = head(logs.store, root).await?.read_at;
    let folds = tree::overviews(logs, root).await?;
    Ok(folds.iter().rev().flat_map(|fold| PendingCallView::of_session(fold, root, now)).collect())
}

/// Returns at most `most` pending calls of all sessions of the store, those of the newest root
/// sessions first.
///
/// # Errors
/// Returns the errors of the store.
pub async fn all_pending_calls(
    logs: SessionReader<'_>,
    most: usize,
) -> Result<Vec<PendingCallView>> {
    let filter = SessionFilter::new().pending();
    let (mut roots, mut views) = (HashSet::new(), Vec::new());
    for head in list_all(logs.store, &filter).await? {
        if views.len() >= most {
            break;
        }
        if roots.insert(head.created.root.clone()) {
            views.extend(pending_calls(logs, &head.created.root).await?);
        }
    }
    views.truncate(most);
    Ok(views)
}

/// Returns a pending call of a root session or one of its descendants.
///
/// # Errors
/// Returns the errors of [`submit`](super::submit) for an answer to this call: an error with the
/// reason if the call is not pending. A call whose deadline has passed is returned until a run
/// records that.
pub async fn pending_call(
    logs: SessionReader<'_>,
    root: &SessionId,
    call: &CallRef,
) -> Result<PendingCallView> {
    let now = head(logs.store, root).await?.read_at;
    let owner = owner(logs, root, call).await?;
    let fold = logs.overview(&owner).await?;
    let views = PendingCallView::of_session(&fold, root, now);
    views.into_iter().find(|view| view.pending.call == call.call).ok_or_else(|| {
        let error = refusal(&fold, &call.call, fold.settled_call(&call.call));
        error.with_context("session", &owner).with_context("call", &call.call)
    })
}
