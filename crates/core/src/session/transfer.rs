//! Taking sessions out of one store and into another.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Session, load_events};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{RecordedEvent, encode_dated};
use crate::fault;
use crate::id::{AppendId, SessionId};
use crate::store::{
    Append, AppendOutcome, CreateOutcome, Guard, Head, LeaseChange, MAX_PAGE, NewSession, Page,
    Position, SessionFilter, StateStore,
};

/// What names the form of an export.
const FORMAT: &str = "helix-agents.session";

/// The number of the form.
const FORMAT_VERSION: u32 = 1;

/// The most events of one append of an import.
const MAX_EVENTS: usize = 256;

/// From how many bytes on an append of an import is full: 4 MiB.
const FULL_BYTES: usize = 4 * 1024 * 1024;

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
/// The root comes last, so an import that broke off shows no session that is there in part; done
/// again it finishes. An import that is done already changes nothing.
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
    /// The appends that write it, the root's first.
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
        self.sessions.iter().map(ExportedSession::check).collect()
    }
}

/// A log on its way into a store.
struct Log {
    created: NewSession,
    appends: Vec<Append>,
}

impl ExportedSession {
    fn check(&self) -> Result<Log> {
        let mut fold = Session::new(self.session.clone());
        let mut appends: Vec<Append> = Vec::new();
        let mut position = Position::start();
        for batch in batches(&self.events) {
            for recorded in batch {
                fold.apply_recorded(recorded)?;
            }
            let append = self.append(&position, batch, &fold)?;
            position = Position { version: fold.position().version, append: append.id.clone() };
            appends.push(append);
        }
        let parent = fold.parent().map(|parent| &parent.session);
        let agrees = fold.agent() == &self.created.agent && parent == self.created.parent.as_ref();
        if appends.is_empty() || !agrees {
            let message = "a log of the export does not belong to its session";
            return Err(
                Error::new(ErrorCode::InputInvalid, message).with_context("session", &self.session)
            );
        }
        if let Some(last) = appends.last_mut() {
            last.lease = LeaseChange::Clear;
        }
        Ok(Log { created: self.created.clone(), appends })
    }

    fn append(
        &self,
        expected: &Position,
        batch: &[RecordedEvent],
        fold: &Session,
    ) -> Result<Append> {
        let body = encode_dated(batch)?;
        let first = batch.first();
        Ok(Append {
            session: self.session.clone(),
            expected: expected.clone(),
            id: append_id(expected, &body),
            run: first.and_then(|it| it.run.clone()),
            schema: first.map_or(0, |it| it.schema),
            count: u32::try_from(batch.len()).unwrap_or(u32::MAX),
            body,
            summary: Some(fold.summary()),
            lease: if fold.current_run().is_some() { IMPORTING } else { LeaseChange::Clear },
            guard: Guard::None,
        })
    }
}

/// Nobody takes over a session of which only a part is there.
const IMPORTING: LeaseChange = LeaseChange::Take(std::time::Duration::from_secs(60));

/// An id that follows from what is written, so that an import can be repeated.
fn append_id(expected: &Position, body: &[u8]) -> AppendId {
    let digest = Sha256::new().chain_update(expected.append.as_str()).chain_update(body).finalize();
    let digest: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    AppendId::from(format!("import-{digest}"))
}

/// The log in pieces that one append can carry: of one run and schema, and neither too many events
/// nor too many bytes.
fn batches(events: &[RecordedEvent]) -> impl Iterator<Item = &[RecordedEvent]> {
    let mut rest = events;
    std::iter::from_fn(move || {
        let first = rest.first()?;
        let mut bytes = 0;
        let fits = |(index, event): &(usize, &RecordedEvent)| {
            bytes += size(event);
            let same = event.run == first.run && event.schema == first.schema;
            same && *index < MAX_EVENTS && (*index == 0 || bytes <= FULL_BYTES)
        };
        let count = rest.iter().enumerate().take_while(fits).count();
        let (batch, after) = rest.split_at_checked(count)?;
        rest = after;
        Some(batch)
    })
}

/// About how many bytes an event takes.
fn size(event: &RecordedEvent) -> usize {
    serde_json::to_vec(&event.event).map_or(0, |bytes| bytes.len())
}

impl Log {
    async fn write(self, store: &dyn StateStore) -> Result<()> {
        let mut created = Some(self.created);
        for append in self.appends {
            let session = append.session.clone();
            fault::point("import.before_append");
            let taken = match created.take() {
                Some(new) => {
                    matches!(
                        store.create_session(new, append).await?,
                        CreateOutcome::Created { .. }
                    )
                }
                None => matches!(store.append(append).await?, AppendOutcome::Appended { .. }),
            };
            fault::point("import.after_append");
            if !taken {
                let message = "the store holds another session of this id";
                return Err(
                    Error::new(ErrorCode::SessionExists, message).with_context("session", session)
                );
            }
        }
        Ok(())
    }
}
