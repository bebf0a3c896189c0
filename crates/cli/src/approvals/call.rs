//! The command line arguments that name a pending call.

use anyhow::Result;
use clap::Args;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::id::SessionId;
use helix_agents::session::{CallRef, PendingCallView};

use crate::place::Place;

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
    /// Use the newest root session.
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
    pub(super) async fn find(&self, place: &Place) -> Result<NamedCall> {
        let given = CallRef::from(self.call.as_str());
        let head = match (&self.session, &given.session) {
            (Some(session), _) => place.head(session).await?,
            (None, _) if self.last => place.newest().await?,
            (None, Some(session)) => place.head(session.as_str()).await?,
            (None, None) => return Err(self.ambiguous(place).await?.into()),
        };
        let root = head.created.root;
        // With a child session given, the call is the child's. With a root session, it may be any child's.
        let of_child = (head.session != root).then_some(head.session);
        let session = given.session.or(of_child);
        Ok(NamedCall { root, call: CallRef { session, call: given.call } })
    }

    /// The error for a call id without a session. Call ids are short and repeat in every session, so an
    /// id alone is never enough.
    async fn ambiguous(&self, place: &Place) -> Result<Error> {
        let all = place.all_pending_calls(usize::MAX).await?;
        let same_id = all.iter().filter(|view| view.pending.call.as_str() == self.call);
        let named: Vec<_> =
            same_id.take(MAX_NAMED).map(|view| view.reference().to_string()).collect();
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
    /// Returns an error with the reason if the call is not pending.
    pub(super) async fn pending(&self, place: &Place) -> Result<PendingCallView> {
        place.pending_call(&self.root, &self.call).await
    }
}
