//! The agent of a conversation: one that runs here, or one of a server.

use std::collections::BTreeMap;

use anyhow::Result;
use helix_agents::client::Client;
use helix_agents::error::{Error, ErrorCode};
use helix_agents::store::Head;
use helix_agents::terminal::Screen;

use crate::executor::Executor;
use crate::model::Model;
use crate::place::Place;
use crate::session_agent::{Overrides, SessionAgent};

/// The agent of a conversation.
#[derive(Debug)]
pub(super) enum ChatAgent {
    /// An agent that this process runs.
    Local(Box<SessionAgent>),
    /// The name of an agent at a server.
    Remote(Client, String),
}

impl ChatAgent {
    /// Returns the agent of an existing session.
    pub(super) async fn of_session(
        place: &Place,
        head: &Head,
        overrides: Overrides<'_>,
    ) -> Result<Self> {
        match place {
            Place::Store { .. } => {
                Ok(Self::Local(Box::new(SessionAgent::of_session(head, overrides).await?)))
            }
            Place::Server(_) if !overrides.is_empty() => Err(fixed().into()),
            Place::Server(client) => {
                Ok(Self::Remote(client.clone(), head.created.agent.to_string()))
            }
        }
    }

    /// Returns the agent of a new conversation. At a server, it is the named one, or the only one.
    pub(super) async fn of_conversation(place: &Place, overrides: Overrides<'_>) -> Result<Self> {
        let client = match place {
            Place::Store { .. } => {
                return Ok(Self::Local(Box::new(SessionAgent::of_conversation(overrides).await?)));
            }
            Place::Server(_) if overrides.model.is_some() => return Err(fixed().into()),
            Place::Server(client) => client.clone(),
        };
        if let Some(agent) = overrides.agent {
            return Ok(Self::Remote(client, agent.to_string_lossy().into_owned()));
        }
        let agents = client.agents().await.map_err(Error::from)?;
        match agents.as_slice() {
            [agent] => Ok(Self::Remote(client, agent.clone())),
            agents => {
                let message = format!("name the agent; the server has: {}", agents.join(", "));
                Err(Error::new(ErrorCode::InputInvalid, message).into())
            }
        }
    }

    /// Creates the executor of the agent's runs.
    pub(super) fn executor(&self, place: &Place) -> Result<Executor> {
        match self {
            Self::Local(session_agent) => Executor::local(session_agent, place),
            Self::Remote(client, agent) => Ok(Executor::remote(client, agent)),
        }
    }

    /// Returns the name.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Local(session_agent) => session_agent.agent().name(),
            Self::Remote(_, agent) => agent,
        }
    }

    /// Returns the model. A server chooses that of its agents.
    pub(super) fn model(&self) -> Option<&Model> {
        match self {
            Self::Local(session_agent) => Some(session_agent.model()),
            Self::Remote(..) => None,
        }
    }

    /// Returns the tags of a new session.
    pub(super) fn tags(&self) -> BTreeMap<String, String> {
        match self {
            Self::Local(session_agent) => session_agent.tags(),
            Self::Remote(..) => BTreeMap::new(),
        }
    }

    /// Shows the warnings to the user.
    pub(super) fn show_warnings(&self, screen: &Screen) {
        if let Self::Local(session_agent) = self {
            session_agent.show_warnings(screen);
        }
    }
}

/// The error for options that change an agent of a server.
fn fixed() -> Error {
    Error::new(
        ErrorCode::InputInvalid,
        "the server determines the agent of a session and its model",
    )
}
