//! The command line arguments that name a pending call.

use anyhow::Result;
use clap::Args;
use helix_agents::AnyStore;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::id::SessionId;
use helix_agents::session::{CallRef, ResolvedCall, load};

use crate::pending_call::{WaitingCall, all, below};
use crate::storage;

/// The maximum number of calls that an error lists.
const MAX_NAMED: usize = 10;

/// The command line arguments that name a call.
#[derive(Debug, Args)]
pub(crate) struct WhichCall {
    /// The call, as `helix approvals list` shows it: `session#call`; or only the call id, with
    /// --session or --last.
    #[arg(value_name = "CALL")]
    call: String,
    /// The session of the call, or its root session.
    #[arg(long, value_name = "SESSION", conflicts_with = "last")]
    session: Option<String>,
    /// Use the newest session.
    #[arg(long)]
    last: bool,
}

/// A call named on the command line, and its root session.
#[derive(Debug)]
pub(super) struct NamedCall {
    pub(super) root: SessionId,
    pub(super) call: CallRef,
}

impl WhichCall {
    /// Resolves the call. It does not check that the call is pending.
    pub(super) async fn find(&self, store: &AnyStore) -> Result<NamedCall> {
        let given = CallRef::from(self.call.as_str());
        let head = match (&self.session, &given.session) {
            (Some(session), _) => storage::head(store, session).await?,
            (None, _) if self.last => storage::newest(store).await?,
            (None, Some(session)) => storage::head(store, session.as_str()).await?,
            (None, None) => return Err(self.ambiguous(store).await?.into()),
        };
        let root = head.created.root;
        // With a child session given, the call is the child's. With a root session, it may be any child's.
        let of_child = (head.session != root).then_some(head.session);
        let session = given.session.or(of_child);
        Ok(NamedCall { root, call: CallRef { session, call: given.call } })
    }

    /// The error for a call id without a session. Call ids are short and repeat in every session, so an
    /// id alone is never enough.
    async fn ambiguous(&self, store: &AnyStore) -> Result<Error> {
        let mut named = Vec::new();
        for waiting in all(store, usize::MAX).await? {
            if waiting.view.pending.call.as_str() == self.call && named.len() < MAX_NAMED {
                named.push(waiting.reference);
            }
        }
        let hint = match named.as_slice() {
            [] => "no session has a pending call with this id".to_owned(),
            named => format!("the candidates are {}", named.join(", ")),
        };
        let message = format!(
            "the session is missing: write `session#call`, or add --session or --last; {hint}"
        );
        Ok(Error::new(ErrorCode::InputInvalid, message).with_context("call", &self.call))
    }
}

impl NamedCall {
    /// Loads the pending call.
    ///
    /// # Errors
    /// [`ErrorCode::CallNotFound`], with the reason, if the call is not pending.
    pub(super) async fn waiting(&self, store: &AnyStore) -> Result<WaitingCall> {
        let is_named = |waiting: &WaitingCall| {
            let session = self.call.session.as_ref();
            waiting.view.pending.call == self.call.call
                && session.is_none_or(|id| *id == waiting.view.session)
        };
        let mut found: Vec<_> =
            below(store, &self.root).await?.into_iter().filter(is_named).collect();
        if let (Some(only), true) = (found.pop(), found.is_empty()) {
            return Ok(only);
        }
        if !found.is_empty() {
            let message =
                "several sessions have a pending call with this id; write it as `session#call`";
            let error = Error::new(ErrorCode::InputInvalid, message);
            return Err(error.with_context("call", &self.call).into());
        }
        let session = self.call.session.as_ref().unwrap_or(&self.root);
        let fold = load(store, session).await?;
        let message = match fold.settled_call(&self.call.call) {
            Some(ResolvedCall::Answered(_)) => "the call was already answered",
            Some(ResolvedCall::Expired) => "the deadline of the call passed without an answer",
            Some(ResolvedCall::Dropped) => "the call has a result already",
            None if fold.tool_call(&self.call.call).is_some() => "the call is not pending",
            None => "the call does not exist",
        };
        let error = Error::new(ErrorCode::CallNotFound, message);
        Err(error.with_context("session", session).with_context("call", &self.call.call).into())
    }
}
