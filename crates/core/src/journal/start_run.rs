//! Starts a run. If several processes start a run of the same session, exactly one succeeds: the store appends the
//! start only to the expected version, and only if no other owner holds the lease.

use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::event::Event;
use crate::fault;
use crate::mutant;
use crate::store::{AppendOutcome, CreateOutcome, Guard, NewSession};

use super::Journal;
use super::hold::Oversize;

/// The outcome of starting a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartOutcome {
    /// The run was recorded. It is the session's current run unless the same append ended it.
    Started,
    /// Another process appended to the log meanwhile. The caller has to reload the session.
    Changed,
    /// Another owner's lease has not expired.
    Leased {
        /// The lease expiry, by the store's clock.
        until: Timestamp,
        /// The current time of the store's clock.
        now: Timestamp,
    },
}

impl Journal {
    /// Creates the session with these events, which start its first run.
    ///
    /// # Errors
    /// Returns [`ErrorCode::SessionExists`] if another process created it, [`ErrorCode::SessionNotFound`] if the parent
    /// of the new session does not exist, [`ErrorCode::TooLarge`] if the events do not fit into one append, and the
    /// errors of the store.
    pub async fn create(&mut self, new: NewSession, events: Vec<Event>) -> Result<()> {
        self.hold(&events, Oversize::Refused)?;
        let parent = new.parent.clone();
        let guard = if parent.is_some() { Guard::ParentExists } else { Guard::None };
        let append = self.append_of_held(guard);
        fault::point("journal.before_create");
        let sent = append.id.clone();
        match self.config.store.create_session(new, append).await? {
            CreateOutcome::Created { at } => {
                fault::point("journal.after_create");
                self.acknowledge(sent, at);
                Ok(())
            }
            CreateOutcome::Exists => {
                self.roll_back();
                Err(Error::new(ErrorCode::SessionExists, "a session with this id already exists")
                    .with_context("session", self.session().id()))
            }
            CreateOutcome::ParentMissing => {
                self.roll_back();
                let message = "the parent of the new session does not exist";
                let error = Error::new(ErrorCode::SessionNotFound, message)
                    .with_context("session", self.session().id());
                Err(match parent {
                    Some(parent) => error.with_context("parent", parent),
                    None => error,
                })
            }
        }
    }

    /// Starts this journal's run with these events. They contain `RunStarted`, which only `HistoryHealed` and `Rewound`
    /// may precede. A conflict is returned to the caller, which decides anew; the events are not appended again.
    ///
    /// Events that are already staged are part of the same append. A run that ends as soon as it
    /// starts, such as an abort, is therefore staged as a whole and started with no further events.
    ///
    /// # Errors
    /// Returns the store's errors, the errors of illegal events, and [`ErrorCode::TooLarge`] if the
    /// events do not fit into one append.
    pub async fn start(&mut self, events: Vec<Event>) -> Result<StartOutcome> {
        self.hold(&events, Oversize::Refused)?;
        let guard = if mutant!("lease-taken") { Guard::None } else { Guard::LeaseFree };
        let append = self.append_of_held(guard);
        let append_id = append.id.clone();
        fault::point("journal.before_start");
        match self.config.store.append(append).await? {
            AppendOutcome::Appended { at } => {
                fault::point("journal.after_start");
                self.acknowledge(append_id, at);
                Ok(StartOutcome::Started)
            }
            AppendOutcome::Conflict { .. } => {
                self.roll_back();
                Ok(StartOutcome::Changed)
            }
            AppendOutcome::GuardFailed { lease_until, now } => {
                self.roll_back();
                Ok(StartOutcome::Leased { until: lease_until.unwrap_or(now), now })
            }
            AppendOutcome::HistoryLost => Err(self.history_lost()),
        }
    }
}
