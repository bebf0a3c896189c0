//! A log on its way into a store, where it appears at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::ExportedSession;
use crate::error::{Error, ErrorCode, Result};
use crate::event::{RecordedEvent, encode_dated};
use crate::fault;
use crate::id::{AppendId, SessionId};
use crate::session::Session;
use crate::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Guard, LeaseChange, NewSession, Position,
    SessionStatus, StateStore, Summary,
};

/// The most events of one append.
const MAX_EVENTS: usize = 256;

/// From how many bytes on an append is full: 4 MiB.
const FULL_BYTES: usize = 4 * 1024 * 1024;

/// The runtime of what stands aside, which no runtime takes for its own.
const ASIDE: &str = "import";

/// A log in the appends that carry it. Their ids follow from what is written, so each of them can
/// be repeated.
pub(super) struct Log {
    created: NewSession,
    /// All but the last: they are written aside.
    before: Vec<Append>,
    /// What makes a session of them.
    last: Append,
}

impl Log {
    /// Judges a log.
    pub(super) fn of(exported: &ExportedSession) -> Result<Self> {
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
        let agrees = *fold.agent() == created.agent && parent == created.parent.as_ref();
        let Some(mut last) = appends.pop().filter(|_| agrees) else {
            let message = "a log of the export does not belong to its session";
            return Err(Error::new(ErrorCode::InputInvalid, message)
                .with_context("session", &exported.session));
        };
        last.summary = Some(fold.summary());
        last.usage = Some(fold.own_usage().bounded());
        let mut log = Self { created, before: appends, last };
        let aside = log.aside();
        for append in &mut log.before {
            append.session = aside.clone();
        }
        if let Some(first) = log.before.first_mut() {
            first.summary = Some(summary_aside());
            // What stands aside is counted where it is a session.
            first.usage = Some(Arc::default());
        }
        Ok(log)
    }

    /// Where it is written before it is a session.
    fn aside(&self) -> SessionId {
        let digest = Sha256::new()
            .chain_update(self.last.session.as_str())
            .chain_update(self.last.id.as_str());
        SessionId::from(format!("import-{}", hex(digest)))
    }

    /// Writes it, unless it is there.
    pub(super) async fn write(self, store: &dyn StateStore) -> Result<()> {
        if self.before.is_empty() {
            fault::point("import.before_append");
            let outcome = store.create_session(self.created, self.last.clone()).await?;
            fault::point("import.after_append");
            let taken = matches!(outcome, CreateOutcome::Created { .. });
            return if taken { Ok(()) } else { Err(in_the_way(&self.last.session)) };
        }
        if !self.is_there(store).await? {
            match self.write_aside(store).await {
                // Another import of the same has finished, and removed what stood aside.
                Err(error)
                    if error.code() == ErrorCode::SessionNotFound
                        && self.is_there(store).await? => {}
                written => written?,
            }
        }
        store.delete(&self.aside()).await?;
        fault::point("import.after_delete");
        Ok(())
    }

    /// Whether all of it is there, whatever came after it.
    async fn is_there(&self, store: &dyn StateStore) -> Result<bool> {
        let Some(head) = store.head(&self.last.session).await? else { return Ok(false) };
        // An append that the log has already is answered as the first time, and not written.
        let is_long_enough = head.position.version >= end_of(&self.last).version;
        let same = is_long_enough
            && matches!(store.append(self.last.clone()).await?, AppendOutcome::Appended { .. });
        if same { Ok(true) } else { Err(in_the_way(&self.last.session)) }
    }

    /// Writes all of it, and makes the session of it.
    async fn write_aside(&self, store: &dyn StateStore) -> Result<()> {
        let aside = self.aside();
        let mut created = Some(NewSession {
            agent: Arc::clone(&self.created.agent),
            root: aside.clone(),
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
                return Err(in_the_way(&aside));
            }
        }
        fault::point("import.before_append");
        let outcome = store.fork(&aside, self.created.clone(), self.last.clone()).await?;
        fault::point("import.after_append");
        let taken = matches!(outcome, ForkOutcome::Created { .. });
        if taken { Ok(()) } else { Err(in_the_way(&self.last.session)) }
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
        run: first.and_then(|it| it.run.clone()),
        schema: first.map_or(0, |it| it.schema),
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

/// Nobody goes on with it, and it may be purged.
fn summary_aside() -> Summary {
    let status = SessionStatus::Aborted;
    Summary { status, run: None, runtime: ASIDE.into(), pending: 0, wake_at: None }
}

fn in_the_way(session: &SessionId) -> Error {
    Error::new(ErrorCode::SessionExists, "the store holds another session of this id")
        .with_context("session", session)
}

fn hex(digest: Sha256) -> String {
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
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
