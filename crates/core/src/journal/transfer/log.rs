//! The import of one log, which appears in the store atomically.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::ExportedSession;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{RecordedEvent, encode_dated};
use crate::fault;
use crate::id::{AppendId, SessionId};
use crate::machine::session::Session;
use crate::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Guard, LeaseChange, NewSession, Position,
    SessionStatus, StateStore, Summary,
};

/// The maximum number of events of one append.
const MAX_EVENTS: usize = 256;

/// The target size of an append: 4 MiB.
const FULL_BYTES: usize = 4 * 1024 * 1024;

/// The runtime name of staging sessions, which no runtime uses.
const STAGING_RUNTIME: &str = "import";

/// A log divided into appends. The append ids derive from the content, so each append can be
/// repeated.
pub(super) struct Log {
    created: NewSession,
    /// All appends but the last, which are written to the staging session.
    before: Vec<Append>,
    /// The last append, which turns the staging session's log into the real session.
    last: Append,
}

impl Log {
    /// Checks a log and divides it into appends.
    pub(super) fn of(exported: &ExportedSession) -> Result<Self> {
        exported.created.check()?;
        let mut fold = Session::new(exported.session.clone());
        let mut appends: Vec<Append> = Vec::new();
        for batch in batches(&exported.events) {
            for recorded in batch {
                fold.apply_recorded(recorded)?;
            }
            let end = appends.last().map_or_else(Position::start, end_of);
            appends.push(append(&exported.session, end, batch)?);
        }
        let created = exported.created.clone();
        let parent = fold.parent().map(|parent| &parent.session);
        let agrees = *fold.agent() == created.agent
            && parent == created.parent.as_ref()
            && *fold.tags() == created.tags;
        let Some(mut last) = appends.pop().filter(|_| agrees) else {
            let message = "a log of the export does not belong to its session";
            return Err(Error::new(ErrorCode::InputInvalid, message)
                .with_context("session", &exported.session));
        };
        last.summary = Some(fold.summary());
        last.usage = Some(fold.stored_usage());
        let mut log = Self { created, before: appends, last };
        let staging = log.staging_session();
        for append in &mut log.before {
            append.session = staging.clone();
        }
        if let Some(first) = log.before.first_mut() {
            first.summary = Some(staging_summary());
            // The usage counts in the real session.
            first.usage = Some(Arc::default());
        }
        Ok(log)
    }

    /// Returns the id of the staging session.
    fn staging_session(&self) -> SessionId {
        let digest = Sha256::new()
            .chain_update(self.last.session.as_str())
            .chain_update(self.last.id.as_str());
        SessionId::from(format!("import-{}", hex(digest)))
    }

    /// Writes the log, unless the store has it.
    pub(super) async fn write(self, store: &dyn StateStore) -> Result<()> {
        if self.before.is_empty() {
            fault::point("import.before_append");
            let outcome = store.create_session(self.created, self.last.clone()).await?;
            fault::point("import.after_append");
            let taken = matches!(outcome, CreateOutcome::Created { .. });
            return if taken { Ok(()) } else { Err(session_exists(&self.last.session)) };
        }
        if !self.is_imported(store).await? {
            match self.write_via_staging(store).await {
                // A concurrent import of the same log has finished and removed the staging session.
                Err(error)
                    if error.code() == ErrorCode::SessionNotFound
                        && self.is_imported(store).await? => {}
                written => written?,
            }
        }
        store.delete(&self.staging_session()).await?;
        fault::point("import.after_delete");
        Ok(())
    }

    /// Returns `true` if the store has the whole log, possibly with later events.
    async fn is_imported(&self, store: &dyn StateStore) -> Result<bool> {
        let Some(head) = store.head(&self.last.session).await? else { return Ok(false) };
        // The store acknowledges an append that the log already contains, and does not write it
        // again.
        let is_long_enough = head.position.version >= end_of(&self.last).version;
        let same = is_long_enough
            && matches!(store.append(self.last.clone()).await?, AppendOutcome::Appended { .. });
        if same { Ok(true) } else { Err(session_exists(&self.last.session)) }
    }

    /// Writes the appends to a staging session, then creates the real session from it.
    async fn write_via_staging(&self, store: &dyn StateStore) -> Result<()> {
        let staging = self.staging_session();
        let mut created = Some(NewSession {
            agent: Arc::clone(&self.created.agent),
            root: staging.clone(),
            parent: None,
            tags: BTreeMap::new(),
        });
        for append in self.before.iter().cloned() {
            fault::point("import.before_append");
            let taken = match created.take() {
                Some(new) => matches!(
                    store.create_session(new, append).await?,
                    CreateOutcome::Created { .. }
                ),
                None => matches!(store.append(append).await?, AppendOutcome::Appended { .. }),
            };
            fault::point("import.after_append");
            if !taken {
                return Err(session_exists(&staging));
            }
        }
        fault::point("import.before_append");
        let outcome = store.fork(&staging, self.created.clone(), self.last.clone()).await?;
        fault::point("import.after_append");
        let taken = matches!(outcome, ForkOutcome::Created { .. });
        if taken { Ok(()) } else { Err(session_exists(&self.last.session)) }
    }
}

fn append(session: &SessionId, expected: Position, batch: &[RecordedEvent]) -> Result<Append> {
    let body = encode_dated(batch)?;
    let first = batch.first();
    let digest = Sha256::new().chain_update(expected.append.as_str()).chain_update(&body);
    Ok(Append {
        session: session.clone(),
        id: AppendId::from(format!("import-{}", hex(digest))),
        expected,
        run: first.and_then(|recorded| recorded.run.clone()),
        schema: first.map_or(0, |recorded| recorded.schema),
        count: u32::try_from(batch.len()).unwrap_or(u32::MAX),
        body,
        summary: None,
        usage: None,
        lease: LeaseChange::Clear,
        guard: Guard::None,
    })
}

fn end_of(append: &Append) -> Position {
    let version = append.expected.version + u64::from(append.count);
    Position { version, append: append.id.clone() }
}

/// Returns the summary of a staging session, which no process continues and which may be purged.
fn staging_summary() -> Summary {
    let status = SessionStatus::Aborted;
    Summary { status, run: None, runtime: STAGING_RUNTIME.into(), pending: 0, wake_at: None }
}

fn session_exists(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionExists, "the store contains another session with this id")
        .with_context("session", session)
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Divides a log into batches for one append each: with events of the same run and schema, and
/// within the limits on events and bytes.
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

/// Returns the approximate size of an event, in bytes.
fn size(event: &RecordedEvent) -> usize {
    serde_json::to_vec(&event.event).map_or(0, |bytes| bytes.len())
}
