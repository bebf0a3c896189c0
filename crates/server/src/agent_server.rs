//! The server: a router, and how it is served and shut down.

mod connection;
mod serve;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::clock::IdSource as _;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_runtime::{Sweeper, SystemIds};
use tokio::net::TcpListener;

use crate::builder::AgentServerBuilder;
use crate::limits::bounded;
use crate::router::router;
use crate::service::Service;

/// Agents behind HTTP.
///
/// The guide's page on serving lists the routes. The server consists of an executor, a registry of agents and a store.
/// It holds no session in memory: any number of servers can share a store, and a client may send each request to any of
/// them. A run does not depend on the connection of the client that started it.
///
/// Cheap to clone. Clones are the same server.
///
/// # Examples
/// ```no_run
/// use std::sync::Arc;
///
/// use helix_agents_core::agent::AgentRegistry;
/// use helix_agents_core::executor::AgentExecutor;
/// use helix_agents_server::{AgentServer, Tokens};
/// use helix_agents_store_memory::MemoryStore;
/// use tokio::net::TcpListener;
///
/// # async fn example(
/// #     runtime: Arc<dyn AgentExecutor>,
/// #     agents: AgentRegistry,
/// #     store: MemoryStore,
/// #     stop: impl Future<Output = ()> + Send,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// let server = AgentServer::builder(runtime, agents, store)
///     .host("agents.example.com")
///     .bearer(Tokens::read("tokens.toml")?)
///     .build()?;
/// let listener = TcpListener::bind("0.0.0.0:8080").await?;
/// server.serve(listener, stop).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AgentServer {
    service: Arc<Service>,
    sweeper: Arc<Mutex<Option<Sweeper>>>,
    is_open: bool,
    accepts_any_address: bool,
}

impl fmt::Debug for AgentServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentServer").field("service", &self.service).finish_non_exhaustive()
    }
}

impl AgentServer {
    /// Creates the builder of a server whose store keeps both sessions and streams. Pass the store that the executor
    /// uses. Clients may start the agents of the registry.
    pub fn builder(
        executor: Arc<dyn AgentExecutor>,
        registry: AgentRegistry,
        store: impl StateStore + StreamManager,
    ) -> AgentServerBuilder {
        let store = Arc::new(store);
        let streams: Arc<dyn StreamManager> = Arc::clone(&store) as _;
        Self::builder_with_streams(executor, registry, store, streams)
    }

    /// Creates the builder of a server that keeps streams in another place than sessions.
    pub fn builder_with_streams(
        executor: Arc<dyn AgentExecutor>,
        registry: AgentRegistry,
        store: Arc<dyn StateStore>,
        streams: Arc<dyn StreamManager>,
    ) -> AgentServerBuilder {
        AgentServerBuilder::new(executor, registry, store, streams)
    }

    pub(crate) fn new(service: Service, sweep: Option<Duration>, is_open: bool) -> Self {
        let executor = Arc::clone(&service.executor);
        let sweeper = sweep.map(|interval| Sweeper::start(executor, jittered(bounded(interval))));
        Self {
            service: Arc::new(service),
            sweeper: Arc::new(Mutex::new(sweeper)),
            is_open,
            accepts_any_address: false,
        }
    }

    /// Returns the routes, to nest into an application or to serve in your own way. The router is also a
    /// `tower::Service` over the types of the crate `http`.
    ///
    /// Call [`shutdown`](Self::shutdown) before the process exits. It closes open event streams. A graceful shutdown of
    /// `axum::serve` would otherwise wait for them.
    pub fn router(&self) -> Router {
        router(&self.service)
    }

    /// Lets [`serve`](Self::serve) accept connections of other machines although the server has no authentication.
    /// Everyone who reaches the address can then read, change and delete all sessions.
    #[must_use]
    pub fn accept_unauthenticated_from_anywhere(mut self) -> Self {
        self.accepts_any_address = true;
        self
    }

    /// Serves the routes on a listener until `shutdown` completes, and then [shuts down](Self::shutdown).
    ///
    /// It speaks HTTP/1.1 without TLS, closes connections whose client sends no complete head or reads nothing
    /// within the [limits](crate::Limits), and accepts only as many connections as they permit.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the server has no authentication and other machines can reach the listener,
    /// unless [`accept_unauthenticated_from_anywhere`](Self::accept_unauthenticated_from_anywhere) was called.
    ///
    /// # Cancel safety
    /// If the future is dropped, connections are closed. Runs continue; call [`shutdown`](Self::shutdown) to stop them.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<()> {
        let address = listener.local_addr().map_err(|error| {
            Error::new(ErrorCode::ConfigInvalid, "the listener has no address").with_source(error)
        })?;
        if self.is_open && !address.ip().is_loopback() && !self.accepts_any_address {
            let message = "the server has no authentication, and other machines can reach its address; add tokens";
            return Err(
                Error::new(ErrorCode::ConfigInvalid, message).with_context("address", address)
            );
        }
        tracing::info!(%address, "the server accepts connections");
        serve::serve(self, listener, shutdown).await;
        Ok(())
    }

    /// Shuts the server and its executor down, within [`Limits::shutdown`](crate::Limits::shutdown):
    ///
    /// 1. `/health/ready`, and requests that start a run, open an event stream or fork, are answered with 503.
    /// 2. Event streams are broken off. Their clients continue them at another instance.
    /// 3. Sweeps and requests that change something are completed. The executor stops its runs and releases their
    ///    leases, so that another process continues them.
    ///
    /// # Cancel safety
    /// The method can be called again, and completes if the server was shut down before.
    pub async fn shutdown(&self) {
        self.service.draining.cancel();
        self.service.closing.cancel();
        let sweeper = self.sweeper.lock().unwrap_or_else(PoisonError::into_inner).take();
        let executor = &self.service.executor;
        // A sweep or a request that hangs must not keep the executor from releasing its leases.
        let stop_sweeps = async {
            if let Some(sweeper) = sweeper {
                sweeper.stop().await;
            }
        };
        self.service.writes.close();
        let writes = self.service.writes.wait();
        let stopping = async { tokio::join!(stop_sweeps, writes, executor.shutdown()) };
        if tokio::time::timeout(self.service.limits.shutdown, stopping).await.is_err() {
            tracing::warn!(
                "the shutdown took too long; runs in progress are left to other processes"
            );
        }
    }
}

/// Returns an interval between three and five quarters of the given one, another one for each server.
fn jittered(interval: Duration) -> Duration {
    // The low bits of an id are random.
    let random = u32::try_from(SystemIds.next() & 0xffff).unwrap_or_default();
    interval * 3 / 4 + interval / 2 * random / 0x10000
}
