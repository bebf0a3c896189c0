//! Which call, on the command line, and the calls that wait.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use helix_agents::clock::Timestamp;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::event::PendingKind;
use helix_agents::id::SessionId;
use helix_agents::session::{
    CallRef, PendingView, ResolvedCall, SessionReader, load, pending_calls,
};
use helix_agents::store::{MAX_PAGE, Page, SessionFilter, StateStore as _};
use serde::Serialize;

use crate::env;
use crate::storage;
use crate::store::Store;
use crate::summary;
use crate::text::quoted;

/// How many calls an error names.
const MOST_NAMED: usize = 10;

/// Which call, on the command line.
#[derive(Debug, Args)]
pub(crate) struct WhichCall {
    /// The call as `helix approvals list` shows it, `session#call`; or the call alone, with
    /// --session or --last.
    #[arg(value_name = "CALL")]
    call: String,
    /// The session that the call belongs to, or the one above it.
    #[arg(long, value_name = "SESSION", conflicts_with = "last")]
    session: Option<String>,
    /// The call belongs to the newest session.
    #[arg(long)]
    last: bool,
}

/// A call that was named, and the session at the top of its tree.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) root: SessionId,
    pub(super) call: CallRef,
}

/// A call that waits, in its place.
#[derive(Debug, Serialize)]
pub(crate) struct Waiting {
    /// How answers name it: `session#call`.
    pub(crate) reference: String,
    /// The session at the top of the tree: the one to resume.
    pub(crate) root: SessionId,
    /// Whether its deadline has passed, so that only a resume can take note of it.
    pub(crate) expired: bool,
    #[serde(flatten)]
    pub(crate) view: PendingView,
}

impl WhichCall {
    /// The call that is meant. Whether it waits is another question.
    pub(super) async fn find(&self, store: &Store) -> Result<Named> {
        let given = CallRef::from(self.call.as_str());
        let head = match (&self.session, &given.session) {
            (Some(session), _) => storage::head(store, session).await?,
            (None, _) if self.last => storage::newest(store).await?,
            (None, Some(session)) => storage::head(store, session.as_str()).await?,
            (None, None) => return Err(self.ambiguous(store).await?.into()),
        };
        let root = head.created.root;
        // A call of a child is the child's; one below a root may be any child's.
        let of_child = (head.session != root).then_some(head.session);
        let session = given.session.or(of_child);
        Ok(Named { root, call: CallRef { session, call: given.call } })
    }

    /// The ids of calls are short and the same in every session, so one alone never answers.
    async fn ambiguous(&self, store: &Store) -> Result<Error> {
        let mut named = Vec::new();
        for waiting in all(store, usize::MAX).await? {
            if waiting.view.pending.call.as_str() == self.call && named.len() < MOST_NAMED {
                named.push(waiting.reference);
            }
        }
        let hint = match named.as_slice() {
            [] => "no session waits for a call of this id".to_owned(),
            named => format!("there are {}", named.join(", ")),
        };
        let message = format!(
            "say of which session: write `session#call`, or add --session or --last; {hint}"
        );
        Ok(Error::new(ErrorCode::InputInvalid, message).with_context("call", &self.call))
    }
}

impl Named {
    /// The call as it waits.
    ///
    /// # Errors
    /// [`ErrorCode::CallNotFound`], which says what became of it, if it does not wait.
    pub(super) async fn waiting(&self, store: &Store) -> Result<Waiting> {
        let of_it = |it: &Waiting| {
            let session = self.call.session.as_ref();
            it.view.pending.call == self.call.call
                && session.is_none_or(|id| *id == it.view.session)
        };
        let mut found: Vec<_> = below(store, &self.root).await?.into_iter().filter(of_it).collect();
        if let (Some(only), true) = (found.pop(), found.is_empty()) {
            return Ok(only);
        }
        if !found.is_empty() {
            let message = "several sessions wait for a call of this id; write it as `session#call`";
            let error = Error::new(ErrorCode::InputInvalid, message);
            return Err(error.with_context("call", &self.call).into());
        }
        let session = self.call.session.as_ref().unwrap_or(&self.root);
        let fold = load(store, session).await?;
        let message = match fold.settled_call(&self.call.call) {
            Some(ResolvedCall::Answered(_)) => "the call was answered, and does not wait any more",
            Some(ResolvedCall::Expired) => "nobody answered the call before its deadline",
            Some(ResolvedCall::Dropped) => "the call got its result without an answer",
            None if fold.tool_call(&self.call.call).is_some() => {
                "the call does not wait for people"
            }
            None => "there is no such call",
        };
        let error = Error::new(ErrorCode::CallNotFound, message);
        Err(error.with_context("session", session).with_context("call", &self.call.call).into())
    }
}

impl Waiting {
    pub(crate) fn new(view: PendingView, root: &SessionId, now: Timestamp) -> Self {
        Self {
            reference: view.reference().to_string(),
            root: root.clone(),
            expired: view.pending.deadline.is_some_and(|deadline| now > deadline),
            view,
        }
    }

    /// What would run, in one line. Of a member that the model wrote twice the last one counts, and
    /// only that one is shown.
    pub(crate) fn arguments(&self) -> String {
        self.view.arguments.to_value().to_string()
    }

    /// A command that answers it, ready to be typed.
    pub(crate) fn command(&self, word: &str, db: &Path) -> String {
        let helix = env::program();
        let reference = quoted(&self.reference);
        format!("{helix} approvals {word} {reference}{}", summary::db_option(db))
    }
}

/// What a call waits for, in a few words.
pub(crate) fn kind(view: &PendingView) -> &'static str {
    match view.pending.kind {
        PendingKind::Client => "its result",
        PendingKind::Approval { editable: true } => "approval (editable)",
        PendingKind::Approval { .. } => "approval",
        _ => "an answer",
    }
}

/// The calls that wait in a tree.
pub(crate) async fn below(store: &Store, root: &SessionId) -> Result<Vec<Waiting>> {
    let head = storage::head(store, root.as_str()).await?;
    let views = pending_calls(SessionReader::of(store), root).await?;
    Ok(views.into_iter().map(|view| Waiting::new(view, root, head.read_at)).collect())
}

/// At most so many of the calls that wait in a database, those of the newest sessions first.
pub(super) async fn all(store: &Store, most: usize) -> Result<Vec<Waiting>> {
    let filter = SessionFilter { pending: true, ..SessionFilter::default() };
    let mut page = Page { after: None, limit: MAX_PAGE };
    let (mut roots, mut waiting) = (Vec::new(), Vec::new());
    loop {
        let heads = store.list(&filter, &page).await?;
        let Some(last) = heads.last() else { return Ok(waiting) };
        page.after = Some(last.session.clone());
        for root in heads.into_iter().map(|head| head.created.root) {
            if roots.contains(&root) {
                continue;
            }
            waiting.extend(below(store, &root).await?);
            roots.push(root);
            if waiting.len() >= most {
                waiting.truncate(most);
                return Ok(waiting);
            }
        }
    }
}
