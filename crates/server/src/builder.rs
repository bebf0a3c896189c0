//! The builder of a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::clock::Clock;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_protocols::ai_sdk::Major;
use helix_agents_runtime::TokioClock;

use crate::access::AccessRules;
use crate::agent_server::AgentServer;
use crate::auth::{AllowAll, Authorizer, Bearer, Tokens};
use crate::limits::Limits;
use crate::service::{Parts, Service};

/// The default interval of sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

/// The type state of a builder without an authorizer. Such a builder cannot build a server.
#[derive(Debug)]
pub struct NoAuthorizer;

/// The type state of a builder with an authorizer.
#[derive(Debug)]
pub struct WithAuthorizer {
    authorizer: Arc<dyn Authorizer>,
    is_open: bool,
}

/// Builds an [`AgentServer`]. Created by [`AgentServer::builder`].
///
/// Choose who may send requests with [`authorize`](Self::authorize), [`bearer`](Self::bearer) or
/// [`allow_unauthenticated`](Self::allow_unauthenticated). Until then, the builder has no method `build`:
///
/// ```compile_fail,E0599
/// # fn example(builder: helix_agents_server::AgentServerBuilder) {
/// builder.build();
/// # }
/// ```
#[must_use]
pub struct AgentServerBuilder<A = NoAuthorizer> {
    executor: Arc<dyn AgentExecutor>,
    registry: AgentRegistry,
    store: Arc<dyn StateStore>,
    streams: Arc<dyn StreamManager>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    access: AccessRules,
    shows_internal_errors: bool,
    ai_sdk: Major,
    sweep: Option<Duration>,
    authorizer: A,
}

impl<A: fmt::Debug> fmt::Debug for AgentServerBuilder<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentServerBuilder")
            .field("limits", &self.limits)
            .field("access", &self.access)
            .field("authorizer", &self.authorizer)
            .finish_non_exhaustive()
    }
}

impl AgentServerBuilder {
    pub(crate) fn new(
        executor: Arc<dyn AgentExecutor>,
        registry: AgentRegistry,
        store: Arc<dyn StateStore>,
        streams: Arc<dyn StreamManager>,
    ) -> Self {
        Self {
            executor,
            registry,
            store,
            streams,
            clock: Arc::new(TokioClock::new()),
            limits: Limits::default(),
            access: AccessRules::default(),
            shows_internal_errors: false,
            ai_sdk: Major::default(),
            sweep: Some(SWEEP_INTERVAL),
            authorizer: NoAuthorizer,
        }
    }

    /// Authorizes requests with your own code.
    pub fn authorize(self, authorizer: impl Authorizer) -> AgentServerBuilder<WithAuthorizer> {
        self.with(WithAuthorizer { authorizer: Arc::new(authorizer), is_open: false })
    }

    /// Authorizes requests by bearer tokens.
    pub fn bearer(self, tokens: Tokens) -> AgentServerBuilder<WithAuthorizer> {
        self.authorize(Bearer::new(tokens))
    }

    /// Accepts all requests, with access to all sessions. For a server that only its own machine can reach:
    /// [`serve`](AgentServer::serve) refuses any other address, unless you call
    /// [`accept_unauthenticated_from_anywhere`](AgentServer::accept_unauthenticated_from_anywhere).
    pub fn allow_unauthenticated(self) -> AgentServerBuilder<WithAuthorizer> {
        self.with(WithAuthorizer { authorizer: Arc::new(AllowAll), is_open: true })
    }

    fn with(self, authorizer: WithAuthorizer) -> AgentServerBuilder<WithAuthorizer> {
        let Self { executor, registry, store, streams, clock, limits, access, sweep, .. } = self;
        let (shows_internal_errors, ai_sdk) = (self.shows_internal_errors, self.ai_sdk);
        AgentServerBuilder {
            executor,
            registry,
            store,
            streams,
            clock,
            limits,
            access,
            shows_internal_errors,
            ai_sdk,
            sweep,
            authorizer,
        }
    }
}

impl<A> AgentServerBuilder<A> {
    /// Sets the limits. Default: those of [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Accepts requests with this name in `Host`, such as `api.example.com`, in addition to the names of this machine
    /// (`localhost`, `127.0.0.1`, `[::1]`). The server refuses requests with another name, because another site can
    /// make its own name resolve to this server (DNS rebinding).
    pub fn host(mut self, name: impl Into<String>) -> Self {
        self.access.hosts.insert(name.into().to_ascii_lowercase());
        self
    }

    /// Accepts any name in `Host`, because a proxy in front of the server checks it.
    pub fn any_host(mut self) -> Self {
        self.access.accepts_any_host = true;
        self
    }

    /// Lets pages of this origin, such as `https://app.example.com`, call the server and read its responses. Default:
    /// only pages that the server's own host serves.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.access.origins.insert(origin.into());
        self
    }

    /// Lets pages of the listed origins send cookies. Only useful for an authorizer that reads them.
    pub fn allow_cookies(mut self) -> Self {
        self.access.accepts_cookies = true;
        self
    }

    /// Shows the causes of internal errors, and the messages and details of recorded errors, for development. Default: only in the log of the process.
    pub fn show_internal_errors(mut self) -> Self {
        self.shows_internal_errors = true;
        self
    }

    /// Sets the major version of the AI SDK in the pages that use the chat routes. Requests do not name it. Default:
    /// [`Major::Seven`].
    pub fn ai_sdk(mut self, major: Major) -> Self {
        self.ai_sdk = major;
        self
    }

    /// Sets the interval at which the server takes over runs whose process was killed, and continues suspended sessions
    /// whose deadline has passed. Default: 5 s. Each server uses a random interval between 75 % and 125 % of this, so
    /// that instances that start together do not sweep together.
    pub fn sweep(mut self, interval: Duration) -> Self {
        self.sweep = Some(interval);
        self
    }

    /// Switches sweeps off. Another process has to sweep then.
    pub fn no_sweep(mut self) -> Self {
        self.sweep = None;
        self
    }

    /// Replaces the clock that measures rates and the durations of requests, for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}

impl AgentServerBuilder<WithAuthorizer> {
    /// Builds the server and starts its sweeps.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if an origin or a host has an invalid form, and if the server sweeps and
    /// the method is called outside of a tokio runtime.
    pub fn build(self) -> Result<AgentServer> {
        check_names(&self.access)?;
        if self.sweep.is_some() && tokio::runtime::Handle::try_current().is_err() {
            let message = "a server that sweeps has to be built on a tokio runtime";
            return Err(Error::new(ErrorCode::ConfigInvalid, message));
        }
        let WithAuthorizer { authorizer, is_open } = self.authorizer;
        if is_open {
            tracing::warn!("the server accepts all requests without authentication");
        }
        let service = Service::new(Parts {
            executor: self.executor,
            registry: self.registry,
            store: self.store,
            streams: self.streams,
            clock: self.clock,
            limits: self.limits,
            authorizer,
            access: self.access,
            shows_internal_errors: self.shows_internal_errors,
            ai_sdk: self.ai_sdk,
        });
        Ok(AgentServer::new(service, self.sweep, is_open))
    }
}

/// Checks that origins and hosts have the form in which requests name them: anything else would never match.
fn check_names(access: &AccessRules) -> Result<()> {
    let is_origin = |origin: &String| {
        let rest = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '?', '#', '*', ' ']);
        rest.is_some_and(is_name) && *origin == origin.to_ascii_lowercase()
    };
    if let Some(origin) = access.origins.iter().find(|origin| !is_origin(origin)) {
        let message = "an origin has the form `https://host` or `https://host:port`, in lower case";
        return Err(Error::new(ErrorCode::ConfigInvalid, message).with_context("origin", origin));
    }
    let is_host = |host: &String| {
        let has_port = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
        !host.is_empty() && !has_port && !host.contains(['/', '*', ' ', '@'])
    };
    if let Some(host) = access.hosts.iter().find(|host| !is_host(host)) {
        let message = "a host is a name without a scheme, a path and a port";
        return Err(Error::new(ErrorCode::ConfigInvalid, message).with_context("host", host));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
