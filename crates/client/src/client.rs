//! The client.

mod answers;
mod log;
mod runs;
mod sessions;

use std::fmt;
use std::sync::Arc;

use helix_agents_core::id::SessionId;

use crate::api::AgentsBody;
use crate::error::Result;
use crate::follow::{ChunkFollower, FollowOptions};
use crate::transport::{Request, SharedTransport, Transport};

/// A client of an agent server.
///
/// Cheap to clone. Clones share their connections.
///
/// # Repetitions
/// The client repeats a request after a transient failure (a lost connection, 429, 503). It does so within the
/// [limits](crate::Limits), and after the delay that the server asks for. Requests that change something have an id by
/// which the server recognises a repetition, so they take effect once. The exceptions are [`resume`](Self::resume),
/// [`fork`](Self::fork), and a [stop](Self::interrupt) that names no run: they are repeated only if the server cannot
/// have processed them. `delete` has no id either: a repetition that finds no session succeeds.
///
/// # Errors
/// Every method returns the errors that the server reports, with the codes of the guide, and `server_unreachable` and
/// `server_protocol` for failures of the connection and of the response.
///
/// # Durability
/// When a method that changes something returns `Ok`, the change is in the log of the server's store.
///
/// # Cancel safety
/// If the future of a request is dropped, the request may or may not take effect. A run that was started continues.
///
/// # Examples
/// ```no_run
/// use futures_util::StreamExt as _;
/// use helix_agents_client::{Client, StartRequest};
/// use helix_agents_core::stream::ChunkKind;
///
/// # async fn example(token: &str) -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::builder("https://agents.example.com").token(token).build()?;
/// let started = client.start(StartRequest::new("guide", "What is the capital of Norway?")).await?;
/// let mut chunks = client.follow(&started.session);
/// while let Some(stored) = chunks.next().await {
///     if let ChunkKind::TextDelta { delta } = &stored?.chunk.kind {
///         print!("{delta}");
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) transport: SharedTransport,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.url()).finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { transport: Arc::new(transport) }
    }

    /// Returns the address of the server.
    #[must_use]
    pub fn url(&self) -> &str {
        self.transport.base.as_str().trim_end_matches('/')
    }

    /// Returns the names of the server's agents.
    ///
    /// # Errors
    /// Returns the errors of [requests](Self#errors).
    pub async fn agents(&self) -> Result<Vec<String>> {
        let body: AgentsBody = self.transport.json(&Request::get(&["agents"])).await?;
        Ok(body.agents.into_iter().map(|agent| agent.agent_type).collect())
    }

    /// Checks that the server takes new runs and that its store answers.
    ///
    /// # Errors
    /// Returns `server_stopping` if the server shuts down, the error of its store, and the errors of
    /// [requests](Self#errors).
    pub async fn health(&self) -> Result<()> {
        self.transport.send(&Request::get(&["health", "ready"])).await.map(drop)
    }

    /// Follows the stream of a root session from its first chunk.
    #[must_use]
    pub fn follow(&self, session: &SessionId) -> ChunkFollower {
        self.follow_with(session, FollowOptions::default())
    }

    /// Follows the stream of a root session.
    #[must_use]
    pub fn follow_with(&self, session: &SessionId, options: FollowOptions) -> ChunkFollower {
        ChunkFollower::new(Arc::clone(&self.transport), session.clone(), options)
    }
}
