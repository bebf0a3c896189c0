//! The place of sessions, opened: a store, or a client of a server.

mod remote;

use std::sync::Arc;

use anyhow::Result;
use helix_agents::AnyStore;
use helix_agents::client::Client;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::event::RecordedEvent;
use helix_agents::executor::{AgentExecutor as _, ForkOptions, Resumable, RunHandle};
use helix_agents::id::SessionId;
use helix_agents::session::{
    CallRef, Checkpoint, PendingCallView, Session, SessionReader, Submission, all_pending_calls,
    load, load_events, pending_call, pending_calls,
};
use helix_agents::store::{Head, Page, SessionFilter, StateStore as _};
use helix_agents::telemetry::Telemetry;
use serde_json::Value;

use crate::location::Location;
use crate::overview::Overview;
use crate::{checkpoint, live_export, model, session_agent, storage};

/// The place of sessions. Commands read, answer and manage sessions only through it, so they show the same for both.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// A database.
    Store {
        /// The store.
        store: AnyStore,
        /// The export of the spans of this process's runs.
        telemetry: Option<Telemetry>,
    },
    /// A server.
    Server(Client),
}

/// The access of a command to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reads an existing one.
    Read,
    /// Changes an existing one.
    Write,
    /// Creates it if it does not exist.
    Create,
}

impl Place {
    /// Opens a location.
    ///
    /// # Errors
    /// Returns an error if the database cannot be opened. A server is not asked yet.
    pub(crate) async fn open(at: &Location, access: Access) -> Result<Self> {
        if let Some(client) = at.client()? {
            return Ok(Self::Server(client));
        }
        let db = at.database()?;
        let telemetry = match access {
            Access::Read => None,
            Access::Write | Access::Create => live_export::start()?,
        };
        let store = match access {
            Access::Read => storage::open_to_read(db).await?,
            Access::Write => storage::open(db).await?,
            Access::Create => storage::open_or_create(db).await?,
        };
        Ok(Self::Store { store, telemetry })
    }

    /// Exports the remaining spans, and closes the database.
    pub(crate) async fn close(&self) {
        if let Self::Store { store, telemetry } = self {
            live_export::shut_down(telemetry.as_ref()).await;
            storage::close(store).await;
        }
    }

    /// Returns the export of spans, if one is configured and this process executes runs.
    pub(crate) fn telemetry(&self) -> Option<&Telemetry> {
        match self {
            Self::Store { telemetry, .. } => telemetry.as_ref(),
            Self::Server(_) => None,
        }
    }

    /// Loads the head of a session.
    pub(crate) async fn head(&self, session: &str) -> Result<Head> {
        match self {
            Self::Store { store, .. } => storage::head(store, session).await,
            Self::Server(client) => Ok(remote::head(client, &session.into()).await?),
        }
    }

    /// Loads the head of the newest root session.
    pub(crate) async fn newest(&self) -> Result<Head> {
        match self {
            Self::Store { store, .. } => storage::newest(store).await,
            Self::Server(client) => Ok(remote::newest(client).await?),
        }
    }

    /// Loads a page of heads that a filter selects, newest first. A server lists only root sessions. There, the
    /// filter's tags match only the labels that clients set, not the tags of programs.
    pub(crate) async fn list(&self, filter: &SessionFilter, page: &Page) -> Result<Vec<Head>> {
        match self {
            Self::Store { store, .. } => Ok(store.list(filter, page).await?),
            Self::Server(client) => Ok(remote::list(client, filter, page).await?),
        }
    }

    /// Returns the model that a session was created with, if that is recorded. A server does not tell.
    pub(crate) async fn model(&self, head: &Head) -> Result<Option<String>> {
        match self {
            Self::Store { store, .. } => model::of(head, store).await,
            Self::Server(_) => Ok(None),
        }
    }

    /// Loads the state of a session without its history.
    pub(crate) async fn overview(&self, session: &SessionId) -> Result<Overview> {
        match self {
            Self::Store { store, .. } => {
                Ok((&SessionReader::of(store).overview(session).await?).into())
            }
            Self::Server(client) => Ok(client.status(session).await.map_err(Error::from)?.into()),
        }
    }

    /// Loads the custom state of a session.
    pub(crate) async fn state(&self, session: &SessionId) -> Result<Arc<Value>> {
        match self {
            Self::Store { store, .. } => {
                Ok(Arc::clone(SessionReader::of(store).overview(session).await?.state()))
            }
            Self::Server(client) => {
                Ok(Arc::new(client.session(session).await.map_err(Error::from)?.custom_state))
            }
        }
    }

    /// Loads the checkpoints of a session.
    pub(crate) async fn checkpoints(&self, session: &SessionId) -> Result<Vec<Checkpoint>> {
        match self {
            Self::Store { store, .. } => Ok(load(store, session).await?.checkpoints().to_vec()),
            Self::Server(client) => Ok(client.checkpoints(session).await.map_err(Error::from)?),
        }
    }

    /// Loads the model's reply for each checkpoint. Empty for a server, which does not return replies here.
    pub(crate) async fn replies(&self, session: &SessionId) -> Result<Vec<String>> {
        match self {
            Self::Store { store, .. } => Ok(checkpoint::replies(&load(store, session).await?)),
            Self::Server(_) => Ok(Vec::new()),
        }
    }

    /// Returns the version of the checkpoint after a step.
    ///
    /// # Errors
    /// Returns [`ErrorCode::CheckpointNotFound`] if there is none.
    pub(crate) async fn checkpoint_after(
        &self,
        session: &SessionId,
        step: u32,
    ) -> Result<u64, Error> {
        match self {
            Self::Store { store, .. } => {
                Ok(load(store, session).await?.checkpoint_after(step)?.version)
            }
            Self::Server(client) => remote::checkpoint_after(client, session, step).await,
        }
    }

    /// Checks that a session can be rewound to a version. Does nothing for a server, which checks the version when the
    /// session is resumed.
    ///
    /// # Errors
    /// Returns [`ErrorCode::CheckpointNotFound`] if the session has no such checkpoint.
    pub(crate) async fn check_rewind_target(
        &self,
        session: &SessionId,
        version: u64,
    ) -> Result<(), Error> {
        match self {
            Self::Store { store, .. } => load(store, session).await?.check_rewind_target(version),
            Self::Server(_) => Ok(()),
        }
    }

    /// Loads a session with its history. A server permits this only to operators.
    pub(crate) async fn load(&self, session: &SessionId) -> Result<Session> {
        match self {
            Self::Store { store, .. } => Ok(load(store, session).await?),
            Self::Server(client) => Ok(client.load(session).await.map_err(Error::from)?),
        }
    }

    /// Loads the events of a session. A server permits this only to operators.
    pub(crate) async fn events(&self, session: &SessionId) -> Result<Vec<RecordedEvent>> {
        match self {
            Self::Store { store, .. } => Ok(load_events(store, session, 0).await?),
            Self::Server(client) => Ok(client.events(session).await.map_err(Error::from)?),
        }
    }

    /// Loads the pending calls of a root session and its descendants.
    pub(crate) async fn pending_calls(&self, root: &SessionId) -> Result<Vec<PendingCallView>> {
        match self {
            Self::Store { store, .. } => Ok(pending_calls(SessionReader::of(store), root).await?),
            Self::Server(client) => {
                Ok(client.status(root).await.map_err(Error::from)?.pending_calls)
            }
        }
    }

    /// Loads at most `most` pending calls of all sessions.
    pub(crate) async fn all_pending_calls(&self, most: usize) -> Result<Vec<PendingCallView>> {
        match self {
            Self::Store { store, .. } => {
                Ok(all_pending_calls(SessionReader::of(store), most).await?)
            }
            Self::Server(client) => Ok(remote::all_pending_calls(client, most).await?),
        }
    }

    /// Loads a pending call.
    ///
    /// # Errors
    /// Returns an error with the reason if the call is not pending.
    pub(crate) async fn pending_call(
        &self,
        root: &SessionId,
        call: &CallRef,
    ) -> Result<PendingCallView> {
        match self {
            Self::Store { store, .. } => {
                Ok(pending_call(SessionReader::of(store), root, call).await?)
            }
            Self::Server(client) => Ok(remote::pending_call(client, root, call).await?),
        }
    }

    /// Records an answer to a pending call, without resuming the session.
    pub(crate) async fn submit(&self, root: &SessionId, answer: Submission) -> Result<(), Error> {
        match self {
            Self::Store { store, .. } => {
                let runtime = session_agent::runtime_without_model(store.clone())?;
                runtime.submit_tool_result(root, answer).await.map(drop)
            }
            Self::Server(client) => {
                client.submit_only(root, &answer).await.map(drop).map_err(Error::from)
            }
        }
    }

    /// Returns whether a session can be resumed.
    pub(crate) async fn can_resume(&self, session: &SessionId) -> Result<Resumable> {
        match self {
            Self::Store { store, .. } => {
                let runtime = session_agent::runtime_without_model(store.clone())?;
                Ok(runtime.can_resume(session).await?)
            }
            Self::Server(client) => Ok(remote::can_resume(client, session).await?),
        }
    }

    /// Returns a handle to the last run of a session.
    pub(crate) async fn handle(&self, session: &SessionId) -> Result<RunHandle> {
        match self {
            Self::Store { store, .. } => {
                let runtime = session_agent::runtime_without_model(store.clone())?;
                Ok(runtime.handle(session).await?)
            }
            Self::Server(client) => Ok(remote::last_run(client, session).await?),
        }
    }

    /// Creates a session from a checkpoint of another one.
    pub(crate) async fn fork(
        &self,
        session: &SessionId,
        options: ForkOptions,
    ) -> Result<SessionId, Error> {
        match self {
            Self::Store { store, .. } => {
                let runtime = session_agent::runtime_without_model(store.clone())?;
                runtime.fork(session, options).await
            }
            Self::Server(client) => {
                let new = options.session.as_ref();
                client.fork(session, options.checkpoint, new).await.map_err(Error::from)
            }
        }
    }

    /// Deletes a session.
    pub(crate) async fn delete(&self, session: &SessionId) -> Result<()> {
        match self {
            Self::Store { store, .. } => store.delete(session).await.map(drop)?,
            Self::Server(client) => client.delete(session).await.map_err(Error::from)?,
        }
        Ok(())
    }

    /// Requests that the run of a session stop at its next step boundary.
    pub(crate) async fn interrupt(
        &self,
        session: &SessionId,
        reason: Option<String>,
    ) -> Result<()> {
        match self {
            Self::Store { store, .. } => {
                let runtime = session_agent::runtime_without_model(store.clone())?;
                runtime.interrupt(session, reason).await?;
            }
            Self::Server(client) => {
                remote::last_run(client, session).await?.interrupt(reason).await?
            }
        }
        Ok(())
    }

    /// Returns the store.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Unsupported`] for a server.
    pub(crate) fn store(&self) -> Result<&AnyStore, Error> {
        match self {
            Self::Store { store, .. } => Ok(store),
            Self::Server(_) => {
                let message = "this is possible only with a database, without --server";
                Err(Error::new(ErrorCode::Unsupported, message))
            }
        }
    }
}
