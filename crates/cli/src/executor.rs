//! The executor of a command's runs: a runtime in this process, or a server.

use std::sync::Arc;

use anyhow::Result;
use helix_agents::agent::AnyAgent;
use helix_agents::client::{Client, ClientError, ResumeRequest, StartRequest};
use helix_agents::error::{Error, ErrorCode};
use helix_agents::executor::{AgentExecutor as _, ExecuteOptions, ResumeOptions, RunHandle};
use helix_agents::id::SessionId;
use helix_agents::runtime_local::LocalRuntime;

use crate::place::Place;
use crate::session_agent::SessionAgent;

/// Executes the runs of one agent. [`place`](Self::place) has their sessions.
#[derive(Debug)]
pub(crate) struct Executor {
    place: Place,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Local { runtime: LocalRuntime, agent: AnyAgent },
    Remote { client: Client, agent: String },
}

impl Executor {
    /// Creates an executor that runs the agent in this process.
    ///
    /// # Errors
    /// Returns [`ErrorCode::Unsupported`] for a server.
    pub(crate) fn local(session_agent: &SessionAgent, place: &Place) -> Result<Self> {
        let runtime = session_agent.runtime(place.store()?, place.telemetry())?;
        let agent = Arc::clone(session_agent.agent());
        Ok(Self { place: place.clone(), kind: Kind::Local { runtime, agent } })
    }

    /// Creates an executor of the agent with this name at a server.
    pub(crate) fn remote(client: &Client, agent: &str) -> Self {
        let place = Place::Server(client.clone());
        Self { place, kind: Kind::Remote { client: client.clone(), agent: agent.to_owned() } }
    }

    /// Returns the place of the sessions.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Starts a turn. At a server, of the options only the session counts.
    pub(crate) async fn start(
        &self,
        message: String,
        options: ExecuteOptions,
    ) -> Result<RunHandle, Error> {
        match &self.kind {
            Kind::Local { runtime, agent } => {
                runtime.execute(Arc::clone(agent), message.into(), options).await
            }
            Kind::Remote { client, agent } => {
                let mut request = StartRequest::new(agent.as_str(), message);
                request.session = options.session;
                let started = client.start(request).await?;
                Ok(client.handle(&started.session, &started.run))
            }
        }
    }

    /// Resumes a session.
    ///
    /// A server resumes sessions by itself as well: after an answer, or if the process of the run was killed. If it was
    /// first, this returns the run in progress.
    pub(crate) async fn resume(
        &self,
        session: &SessionId,
        options: ResumeOptions,
    ) -> Result<RunHandle, Error> {
        let (client, options) = match &self.kind {
            Kind::Local { runtime, agent } => {
                return runtime.resume(Arc::clone(agent), session, options).await;
            }
            Kind::Remote { client, .. } => (client, options),
        };
        let is_plain = options.message.is_none() && options.checkpoint.is_none();
        let mut request = ResumeRequest::new(session.clone());
        (request.message, request.checkpoint) = (options.message, options.checkpoint);
        match client.resume(request).await {
            Ok(started) => Ok(client.handle(&started.session, &started.run)),
            Err(error) if is_plain && was_resumed(&error) => {
                let status = client.status(session).await?;
                let run = status.last_run.filter(|_| !status.can_resume).ok_or(error)?;
                Ok(client.handle(session, &run.run))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Stops the runs of this process, so that another one can continue them. Runs at a server continue. Returns the
    /// error with which to end a command whose run this does not stop.
    pub(crate) async fn shutdown(&self) -> Option<Error> {
        match &self.kind {
            Kind::Local { runtime, .. } => {
                runtime.shutdown().await;
                None
            }
            Kind::Remote { .. } => {
                Some(Error::new(ErrorCode::Closed, "the run continues at the server"))
            }
        }
    }
}

/// Returns `true` if the error can mean that the session was resumed.
fn was_resumed(error: &ClientError) -> bool {
    let codes = [ErrorCode::AlreadyRunning, ErrorCode::AlreadyResumed, ErrorCode::NothingToResume];
    codes.iter().any(|code| error.is(*code)) || error.is(ErrorCode::ServerUnreachable)
}
