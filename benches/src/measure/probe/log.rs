//! A session whose log grows as during a run.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use helix_agents::id::{AppendId, RunId, SessionId};
use helix_agents::store::{
    Append, AppendOutcome, CreateOutcome, Guard, LeaseChange, NewSession, Position, SessionStatus,
    StateStore, Summary,
};

/// The approximate data that a step appends.
pub(super) const BODY: [u8; 600] = [b'x'; 600];

/// The lease that each append takes.
pub(super) const LEASE: Duration = Duration::from_secs(30);

/// The run of the appends.
pub(super) const RUN: &str = "0193e4a7-5a1c-7000-8000-000000000000";

/// The runtime of the appends.
pub(super) const RUNTIME: &str = "local";

/// A session and the end of its log.
pub(super) struct Log {
    store: Arc<dyn StateStore>,
    session: SessionId,
    end: Position,
}

impl Log {
    /// Creates the session with one event.
    pub(super) async fn create(store: Arc<dyn StateStore>, session: &str) -> Result<Self> {
        let session = SessionId::from(session);
        let new = NewSession {
            agent: "bench".into(),
            root: session.clone(),
            parent: None,
            tags: [].into(),
        };
        let log = Self { store, session, end: Position::start() };
        let first = log.next();
        let end = Position { version: 1, append: first.id.clone() };
        match log.store.create_session(new, first).await? {
            CreateOutcome::Created { .. } => Ok(Self { end, ..log }),
            CreateOutcome::Exists | CreateOutcome::ParentMissing => {
                bail!("the session could not be created")
            }
        }
    }

    /// Returns the number of events.
    pub(super) fn version(&self) -> u64 {
        self.end.version
    }

    /// Appends one event.
    pub(super) async fn append(&mut self) -> Result<()> {
        let append = self.next();
        let end = Position { version: self.end.version + 1, append: append.id.clone() };
        match self.store.append(append).await? {
            AppendOutcome::Appended { .. } => self.end = end,
            other => bail!("unexpected outcome of an append: {other:?}"),
        }
        Ok(())
    }

    /// Returns an append like that of a journal during a run: neither an indexed column nor the usage
    /// changes.
    fn next(&self) -> Append {
        Append {
            session: self.session.clone(),
            expected: self.end.clone(),
            id: AppendId::from((self.end.version + 1).to_string()),
            run: Some(RunId::from(RUN)),
            schema: 1,
            count: 1,
            body: BODY.to_vec().into(),
            summary: Some(Summary {
                status: SessionStatus::Active,
                run: Some(RunId::from(RUN)),
                runtime: RUNTIME.into(),
                pending: 0,
                wake_at: None,
            }),
            usage: None,
            lease: LeaseChange::Take(LEASE),
            guard: Guard::None,
        }
    }
}
