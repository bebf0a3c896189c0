//! The reports of a writer, and the expected content of the store.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use helix_agents_core::id::SessionId;
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, NewSession, Page, Position, SessionFilter,
    StateStore, StoredAppend, list_all,
};

use crate::rng::Rng;
use crate::store_suite::support::{append, assert_gapless, first, id, idle, root_session};

/// The prefix of a report line. The test harness prints the other lines.
pub(super) const MARK: &str = "@report ";

/// One report line of a writer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    /// The number of the writer's task.
    pub(super) task: usize,
    /// The operation that the task requests.
    pub(super) operation: Operation,
    /// Whether the store has replied.
    pub(super) is_done: bool,
    /// Number of writes that were forced since the request, if they are counted.
    pub(super) forced: Option<u64>,
}

/// An operation that a writer requests from a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Operation {
    Create { session: String },
    Append { session: String, expected: Position, id: String, count: u32 },
    Fork { from: String, session: String, expected: Position },
    Delete { session: String },
}

/// The tag of all sessions.
const TAG: (&str, &str) = ("suite", "durable");

fn tagged(session: &SessionId) -> NewSession {
    let tags = [(TAG.0.to_owned(), TAG.1.to_owned())].into();
    NewSession { tags, ..root_session(session) }
}

/// Returns the body of an append: always the same for one id, of random length.
fn body(id: &str) -> Bytes {
    let mut rng = Rng::of(("body", id));
    let length = match rng.below(10) {
        0 => 0,
        1 => rng.below(100_000),
        _ => rng.below(1000),
    };
    let mut body = Vec::with_capacity(length + 8);
    while body.len() < length {
        body.extend(rng.roll().to_le_bytes());
    }
    body.truncate(length);
    body.into()
}

impl Operation {
    /// Returns `true` if the contract guarantees that the operation is durable once it was acknowledged.
    pub(super) fn is_promised(&self) -> bool {
        !matches!(self, Self::Delete { .. })
    }

    /// Executes the operation. A repetition returns the same result as the first time.
    pub(super) async fn execute(&self, store: &dyn StateStore) {
        match self {
            Self::Create { session } => {
                let session = id(session);
                let first = Append { body: body("first"), ..first(&session, "first") };
                let outcome = store.create_session(tagged(&session), first).await.unwrap();
                assert!(matches!(outcome, CreateOutcome::Created { .. }), "{self:?}: {outcome:?}");
            }
            Self::Append { session, expected, id: append_id, count } => {
                let append = append(&id(session), expected, append_id);
                let append = Append { count: *count, body: body(append_id), ..append };
                let outcome = store.append(append).await.unwrap();
                assert!(matches!(outcome, AppendOutcome::Appended { .. }), "{self:?}: {outcome:?}");
            }
            Self::Fork { from, session, expected } => {
                let session = id(session);
                let own = append(&session, expected, "fork");
                let own = Append { summary: Some(idle()), body: body("fork"), ..own };
                let outcome = store.fork(&id(from), tagged(&session), own).await.unwrap();
                assert!(matches!(outcome, ForkOutcome::Created { .. }), "{self:?}: {outcome:?}");
            }
            Self::Delete { session } => drop(store.delete(&id(session)).await.unwrap()),
        }
    }
}

/// The sessions that a store must hold, with the ids and counts of their appends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Model(BTreeMap<String, Vec<(String, u32)>>);

impl Model {
    pub(super) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Create { session } => {
                self.0.insert(session.clone(), vec![("first".to_owned(), 1)]);
            }
            Operation::Append { session, id, count, .. } => {
                self.0.entry(session.clone()).or_default().push((id.clone(), *count));
            }
            Operation::Fork { from, session, expected } => {
                let mut version = 0;
                let shared = self.0.get(from).into_iter().flatten().take_while(|(_, count)| {
                    version += u64::from(*count);
                    version <= expected.version
                });
                let mut log: Vec<_> = shared.cloned().collect();
                log.push(("fork".to_owned(), 1));
                self.0.insert(session.clone(), log);
            }
            Operation::Delete { session } => drop(self.0.remove(session)),
        }
    }

    /// Returns a copy with one more operation applied.
    pub(super) fn with(&self, operation: &Operation) -> Self {
        let mut model = self.clone();
        model.apply(operation);
        model
    }

    /// Returns the expected appends of one session.
    pub(super) fn of(&self, session: &str) -> Option<&[(String, u32)]> {
        self.0.get(session).map(Vec::as_slice)
    }

    /// Reads the content of a store. Every log must be complete: without gaps, with the bodies that were
    /// written, and with a head at its end. The list by tag must contain the same sessions. Otherwise the error says where
    /// it is not.
    pub(super) async fn read(store: &dyn StateStore) -> Result<Self, String> {
        let sessions = Self::logs(store).await?;
        let tagged = list_all(store, &SessionFilter::new().tag(TAG.0, TAG.1)).await.unwrap();
        let tagged: BTreeSet<_> = tagged.iter().map(|head| head.session.as_str()).collect();
        if !sessions.keys().map(String::as_str).eq(tagged.iter().copied()) {
            let all = sessions.keys();
            return Err(format!("by tag: {tagged:?}, in all: {all:?}"));
        }
        Ok(Self(sessions))
    }

    async fn logs(store: &dyn StateStore) -> Result<BTreeMap<String, Vec<(String, u32)>>, String> {
        let mut sessions = BTreeMap::new();
        let mut page = Page { after: None, limit: 1000 };
        loop {
            let heads = store.list(&SessionFilter::default(), &page).await.unwrap();
            let Some(last) = heads.last() else { return Ok(sessions) };
            page.after = Some(last.session.clone());
            for head in heads {
                let log = store.read_log(&head.session, 0, u32::MAX).await.unwrap();
                assert_gapless(0, &log);
                let end = log.last().map(StoredAppend::position);
                if end.as_ref() != Some(&head.position) {
                    return Err(format!("a log ends at {end:?}, but its head is {head:?}"));
                }
                let whole = log.into_iter().map(|append| {
                    assert!(append.body == body(append.id.as_str()), "wrong body: {}", append.id);
                    (append.id.to_string(), append.count)
                });
                sessions.insert(head.session.to_string(), whole.collect());
            }
        }
    }
}

impl Operation {
    /// Returns the session that the operation creates, changes or deletes.
    pub(super) fn session(&self) -> SessionId {
        match self {
            Self::Create { session }
            | Self::Append { session, .. }
            | Self::Fork { session, .. }
            | Self::Delete { session } => id(session),
        }
    }
}
