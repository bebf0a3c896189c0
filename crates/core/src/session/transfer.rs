//! Taking sessions out of one store and into another.

mod log;

use serde::{Deserialize, Serialize};

use super::load_events;
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::event::RecordedEvent;
use crate::id::SessionId;
use crate::store::{Head, MAX_PAGE, NewSession, Page, SessionFilter, StateStore};

use log::Log;

/// What names the form of an export.
const FORMAT: &str = "helix-agents.session";

/// The number of the form.
const FORMAT_VERSION: u32 = 1;

/// A session with its children, apart from any store: everything that was recorded, with the
/// original times. JSON of it is what `helix sessions export` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionExport {
    format: String,
    format_version: u32,
    sessions: Vec<ExportedSession>,
}

/// One session of an export.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedSession {
    /// The session.
    pub session: SessionId,
    /// What it was created as.
    pub created: NewSession,
    /// When it was created.
    pub created_at: Timestamp,
    /// Its log.
    pub events: Vec<RecordedEvent>,
}

impl SessionExport {
    /// The sessions: the root, then what is below it.
    #[must_use]
    pub fn sessions(&self) -> &[ExportedSession] {
        &self.sessions
    }
}

/// Reads a root session and everything below it. Streams are not part of it: they can always be
/// replayed as far as the log goes. What is appended to a live session meanwhile may be in or not.
///
/// # Errors
/// [`ErrorCode::SessionNotFound`], [`ErrorCode::NotRoot`] for a child, and the store's.
pub async fn export_session(store: &dyn StateStore, session: &SessionId) -> Result<SessionExport> {
    let root = super::request::head(store, session).await?;
    if root.created.root != *session {
        return Err(Error::new(ErrorCode::NotRoot, "a child is exported with its root")
            .with_context("session", session)
            .with_context("root", &root.created.root));
    }
    // Children first: what a parent's log says of a child that is read later is in the child's.
    let mut sessions = Vec::new();
    for head in below(store, session).await? {
        sessions.push(exported(store, head).await?);
    }
    sessions.push(exported(store, root).await?);
    sessions.reverse();
    Ok(SessionExport { format: FORMAT.to_owned(), format_version: FORMAT_VERSION, sessions })
}

/// The heads of all sessions below a root, newest first.
async fn below(store: &dyn StateStore, root: &SessionId) -> Result<Vec<Head>> {
    let filter = SessionFilter { root: Some(root.clone()), ..SessionFilter::default() };
    let mut heads = Vec::new();
    let mut page = Page { after: None, limit: MAX_PAGE };
    loop {
        let listed = store.list(&filter, &page).await?;
        let Some(last) = listed.last() else { return Ok(heads) };
        page.after = Some(last.session.clone());
        heads.extend(listed.into_iter().filter(|head| head.session != *root));
    }
}

async fn exported(store: &dyn StateStore, head: Head) -> Result<ExportedSession> {
    let events = load_events(store, &head.session, 0).await?;
    let Head { session, created, created_at, .. } = head;
    Ok(ExportedSession { session, created, created_at, events })
}

/// Writes an export into a store, under the ids that the sessions had. What was under way is left
/// as after a crash: `recover` goes on with it. The original goes on by itself, so of a session
/// that is to live in one place the original is deleted or left alone.
///
/// Each session appears at once and as a whole, the root last: a log that takes several appends is
/// written aside and then made the session's. Of an import that broke off there may be children
/// whose root is missing, which nobody goes on with, and an aborted session `import-…`, in which
/// something is aside. Done again it finishes, and removes that. An import that is done already
/// changes nothing; of several at once each finishes.
///
/// # Errors
/// [`ErrorCode::InputInvalid`] if it is no export, [`ErrorCode::LogInvalid`] or
/// [`ErrorCode::SchemaUnknown`] if a log is not legal, [`ErrorCode::SessionExists`] if the store
/// holds another session of the same id, and the store's. Logs are judged before anything is
/// written.
pub async fn import_session(store: &dyn StateStore, export: &SessionExport) -> Result<()> {
    let mut logs = export.check()?;
    logs.reverse();
    for log in logs {
        log.write(store).await?;
    }
    Ok(())
}

impl SessionExport {
    /// The logs of it, the root's first.
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
        SessionId::chosen(root.session.as_str())?;
        let mut ids = Vec::new();
        for session in &self.sessions {
            let parent = session.created.parent.as_ref();
            let in_place = match ids.is_empty() {
                true => parent.is_none(),
                false => parent.is_some_and(|it| self.sessions.iter().any(|of| of.session == *it)),
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
