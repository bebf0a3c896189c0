//! Export of sessions from a store, and import into another one.

mod log;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::conflicts::{MAX_CONFLICTS, too_many_conflicts};
use super::load::load_events;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::event::RecordedEvent;
use crate::id::SessionId;
use crate::store::{Head, MAX_PAGE, NewSession, Page, SessionFilter, StateStore, StoredAppend};

use log::Log;

/// The name of the export format.
const FORMAT: &str = "helix-agents.session";

/// The version of the export format.
const FORMAT_VERSION: u32 = 1;

/// A session with its children, independent of any store: everything that was recorded, with the
/// original times. `helix sessions export` prints it as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionExport {
    format: String,
    format_version: u32,
    sessions: Vec<ExportedSession>,
}

/// One session of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExportedSession {
    /// The session's id.
    pub session: SessionId,
    /// The data that the session was created with.
    pub created: NewSession,
    /// The time when the session was created.
    pub created_at: Timestamp,
    /// The session's log.
    pub events: Vec<RecordedEvent>,
}

impl SessionExport {
    /// Returns the sessions: the root, then its descendants.
    #[must_use]
    pub fn sessions(&self) -> &[ExportedSession] {
        &self.sessions
    }
}

/// Exports a root session and its descendants. Streams are not included, because they can be
/// rebuilt from the log. Events that are appended to a live session meanwhile may or may not be
/// included.
///
/// # Errors
/// Returns [`ErrorCode::SessionNotFound`], [`ErrorCode::NotRoot`] for a child, and the errors of
/// the store.
pub async fn export_session(store: &dyn StateStore, session: &SessionId) -> Result<SessionExport> {
    for _ in 0..MAX_CONFLICTS {
        if let Some(sessions) = sessions_of_tree(store, session).await? {
            let format = FORMAT.to_owned();
            return Ok(SessionExport { format, format_version: FORMAT_VERSION, sessions });
        }
    }
    Err(too_many_conflicts(session))
}

/// Returns the sessions of a tree, starting with the root, or `None` if the tree was deleted
/// meanwhile.
async fn sessions_of_tree(
    store: &dyn StateStore,
    session: &SessionId,
) -> Result<Option<Vec<ExportedSession>>> {
    let first = store.read_log(session, 0, 1).await?;
    let root = super::request::head(store, session).await?;
    if root.created.root != *session {
        return Err(Error::new(
            ErrorCode::NotRoot,
            "this is a child session; export its root session",
        )
        .with_context("session", session)
        .with_context("root", &root.created.root));
    }
    // Children are read first. A child's log, read later than its parent's, could otherwise be
    // ahead of what the parent knows.
    let mut sessions = Vec::new();
    for head in below(store, session).await? {
        sessions.push(exported(store, head).await?);
    }
    sessions.push(exported(store, root).await?);
    sessions.reverse();
    let is_whole = sessions.iter().all(|session| !session.events.is_empty());
    let again = store.read_log(session, 0, 1).await?;
    let id = |page: &[StoredAppend]| page.first().map(|append| append.id.clone());
    Ok((is_whole && id(&first) == id(&again)).then_some(sessions))
}

/// Returns the heads of all sessions below a root, newest first. A session whose parent was not
/// listed is omitted: both were created meanwhile, and the store's clock was set back in between.
async fn below(store: &dyn StateStore, root: &SessionId) -> Result<Vec<Head>> {
    let filter = SessionFilter::new().root(root.clone());
    let mut heads = Vec::new();
    let mut page = Page { after: None, limit: MAX_PAGE };
    loop {
        let listed = store.list(&filter, &page).await?;
        let Some(last) = listed.last() else { break };
        page.after = Some(last.session.clone());
        heads.extend(listed.into_iter().filter(|head| head.session != *root));
    }
    let mut complete = false;
    while !complete {
        let listed: HashSet<_> = heads.iter().map(|head| head.session.clone()).collect();
        let is_listed = |id: &SessionId| id == root || listed.contains(id);
        heads.retain(|head| head.created.parent.as_ref().is_some_and(is_listed));
        complete = heads.len() == listed.len();
    }
    Ok(heads)
}

async fn exported(store: &dyn StateStore, head: Head) -> Result<ExportedSession> {
    let events = load_events(store, &head.session, 0).await?;
    let Head { session, created, created_at, .. } = head;
    Ok(ExportedSession { session, created, created_at, events })
}

/// Imports an export into a store, under the original session ids. Work in progress is left as
/// after a crash, and `recover` continues it. The import does not stop the original, so both
/// sessions may execute the same effects. Delete the original if only the imported session should
/// continue.
///
/// Each session appears atomically, the root last. A log that takes several appends is first
/// written to a staging session and then becomes the real session. An import that was cut off may
/// leave children without a root, which no process continues, and an aborted staging session
/// `import-…`. Running the import again completes it and removes the staging session. Repeating a
/// completed import changes nothing. If several imports run concurrently, each of them completes.
///
/// # Errors
/// Returns [`ErrorCode::InputInvalid`] if the data is not an export, [`ErrorCode::LogInvalid`] or
/// [`ErrorCode::SchemaUnknown`] if a log is illegal, [`ErrorCode::TagInvalid`] if a session has tags
/// that no store accepts, [`ErrorCode::SessionExists`] if the store contains another session with
/// the same id, and the errors of the store. All logs are checked
/// before anything is written.
pub async fn import_session(store: &dyn StateStore, export: &SessionExport) -> Result<()> {
    let mut logs = export.check()?;
    logs.reverse();
    for log in logs {
        log.write(store).await?;
    }
    Ok(())
}

impl SessionExport {
    /// Checks the export and returns its logs, starting with the root's.
    fn check(&self) -> Result<Vec<Log>> {
        let invalid = |message: &str| Error::new(ErrorCode::InputInvalid, message.to_owned());
        if self.format != FORMAT || self.format_version != FORMAT_VERSION {
            let message = "this is not a session that this version can import";
            return Err(invalid(message)
                .with_context("format", &self.format)
                .with_context("format_version", self.format_version));
        }
        let Some(root) = self.sessions.first() else {
            return Err(invalid("the export holds no session"));
        };
        SessionId::validated(root.session.as_str())?;
        let mut ids = Vec::new();
        for session in &self.sessions {
            let parent = session.created.parent.as_ref();
            let in_place = match ids.is_empty() {
                true => parent.is_none(),
                false => {
                    parent.is_some_and(|id| self.sessions.iter().any(|other| other.session == *id))
                }
            };
            if session.created.root != root.session || !in_place || ids.contains(&&session.session)
            {
                return Err(invalid("a session of the export does not belong to its root")
                    .with_context("session", &session.session));
            }
            session.session.check()?;
            ids.push(&session.session);
        }
        self.sessions.iter().map(Log::of).collect()
    }
}
