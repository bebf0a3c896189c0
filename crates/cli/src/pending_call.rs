//! Pending calls of sessions.

use std::path::Path;

use anyhow::Result;
use helix_agents::AnyStore;
use helix_agents::clock::Timestamp;
use helix_agents::event::PendingKind;
use helix_agents::id::SessionId;
use helix_agents::session::{PendingView, SessionReader, pending_calls};
use helix_agents::store::{MAX_PAGE, Page, SessionFilter, StateStore as _};
use serde::Serialize;

use crate::{follow_up, storage};

/// A pending call.
#[derive(Debug, Serialize)]
pub(crate) struct WaitingCall {
    /// The reference that answers use: `session#call`.
    pub(crate) reference: String,
    /// The root session, which is the one to resume.
    pub(crate) root: SessionId,
    /// Whether the deadline has passed. The next resume handles that.
    pub(crate) expired: bool,
    #[serde(flatten)]
    pub(crate) view: PendingView,
}

impl WaitingCall {
    pub(crate) fn new(view: PendingView, root: &SessionId, now: Timestamp) -> Self {
        Self {
            reference: view.reference().to_string(),
            root: root.clone(),
            expired: view.pending.deadline.is_some_and(|deadline| now > deadline),
            view,
        }
    }

    /// The arguments that the call would run with, in one line. If the model wrote a member twice, the
    /// last one counts, and only that one is shown.
    pub(crate) fn arguments(&self) -> String {
        self.view.arguments.to_value().to_string()
    }

    /// A shell command that answers the call.
    pub(crate) fn command(&self, word: &str, db: &Path) -> String {
        follow_up::answer(word, &self.reference, db)
    }
}

/// A short description of what a call waits for.
pub(crate) fn kind(view: &PendingView) -> &'static str {
    match view.pending.kind {
        PendingKind::Client => "a result",
        PendingKind::Approval { editable: true } => "approval (editable)",
        PendingKind::Approval { .. } => "approval",
        _ => "an answer",
    }
}

/// The pending calls of a root session and its sub-agents.
pub(crate) async fn below(store: &AnyStore, root: &SessionId) -> Result<Vec<WaitingCall>> {
    let head = storage::head(store, root.as_str()).await?;
    let views = pending_calls(SessionReader::of(store), root).await?;
    Ok(views.into_iter().map(|view| WaitingCall::new(view, root, head.read_at)).collect())
}

/// Returns at most `most` pending calls of the database, those of the newest sessions first.
pub(crate) async fn all(store: &AnyStore, most: usize) -> Result<Vec<WaitingCall>> {
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
