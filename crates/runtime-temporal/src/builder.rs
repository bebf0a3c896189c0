//! How a runtime on Temporal is put together.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::store::StoreScope;
use helix_agents_runtime::{Settings, builder_methods};
use temporalio_client::{ClientOptions, ConnectionOptions, GrpcCompression, Url};

use crate::guarantees;
use crate::runtime::TemporalRuntime;
use crate::server::{self, Server};
use crate::workflow::RunLimits;

const TARGET: &str = "http://localhost:7233";
const NAMESPACE: &str = "default";
const QUEUE: &str = "helix-agents";
const PREFIX: &str = "helix";

/// The server ends histories at 50,000 events; a part takes six.
const PARTS_PER_HISTORY: u32 = 1_000;

const ATTEMPTS: u32 = 12;

/// A worker that is merely busy is not to count as dead.
const SHORTEST_HEARTBEAT: Duration = Duration::from_secs(2);

/// While a parent waits, it takes the place of a part of its child.
const FOLLOW: Duration = Duration::from_secs(30);

/// How long a server that is not there yet is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A runtime on Temporal under way. See [`TemporalRuntime::builder`].
#[derive(Debug)]
#[must_use = "call `connect` to get the runtime"]
pub struct TemporalRuntimeBuilder {
    settings: Settings,
    target: String,
    connection: Option<ConnectionOptions>,
    client: Option<ClientOptions>,
    namespace: String,
    queue: String,
    prefix: String,
    identity: Option<String>,
    patience: Duration,
    attempts: u32,
    parts_per_history: u32,
    execution: Option<Duration>,
    own_queue: bool,
}

impl Default for TemporalRuntimeBuilder {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            target: TARGET.to_owned(),
            connection: None,
            client: None,
            namespace: NAMESPACE.to_owned(),
            queue: QUEUE.to_owned(),
            prefix: PREFIX.to_owned(),
            identity: None,
            patience: PATIENCE,
            attempts: ATTEMPTS,
            parts_per_history: PARTS_PER_HISTORY,
            execution: None,
            own_queue: false,
        }
    }
}

impl TemporalRuntimeBuilder {
    builder_methods!();

    /// Where the server is. Default `http://localhost:7233`. With `https` it is reached by TLS, and has to have a certificate that
    /// the system trusts, unless [`connection_options`](Self::connection_options) say another.
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = target.into();
        self
    }

    /// How the server is reached, where an address is not enough: TLS, keys, proxies. [`target`](Self::target) and
    /// [`identity`](Self::identity) have no meaning beside it.
    pub fn connection_options(mut self, options: ConnectionOptions) -> Self {
        self.connection = Some(options);
        self
    }

    /// Options of Temporal's client, such as a converter that encrypts what histories hold.
    /// [`namespace`](Self::namespace) has no meaning beside them.
    pub fn client_options(mut self, options: ClientOptions) -> Self {
        self.client = Some(options);
        self
    }

    /// The namespace, which has to exist. Default `default`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The queue over which runs are handed out to workers. Default `helix-agents`. Workers of a queue have to know the same
    /// agents, and to have the same store.
    pub fn task_queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// What the ids of workflows begin with. Default `helix`. Deployments with stores of their own need prefixes of their own
    /// in a namespace that they share.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// What this process is called in Temporal. Default: its number and host.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// How long [`connect`](Self::connect) waits for a server that is not there yet. Default 30 s.
    pub fn connect_within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// How often a part of a run is tried before its run stops: when the store or the server is away, or a worker dies over
    /// it. Default 12, which takes some minutes. Model calls and tools have retries of their own.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// After how many parts a run goes on in a new history, at the latest; the server may ask for it earlier. Default 1,000.
    pub fn parts_per_history(mut self, context: u32) -> Self {
        self.parts_per_history = context;
        self
    }

    /// After how long the workflow of a run is ended by the server, whatever it does. Default: never.
    pub fn execution_timeout(mut self, timeout: Duration) -> Self {
        self.execution = Some(timeout);
        self
    }

    /// Says that the queue is carried out by this process alone, and by no other after it. What lives in one process only
    /// can be honoured then, such as the hooks of one execution; whoever goes on with a run after the process died begins a
    /// new one.
    pub fn own_queue(mut self, own: bool) -> Self {
        self.own_queue = own;
        self
    }

    /// What may be relied on in a runtime that is put together so, and why: one for each of
    /// [`GuaranteeKind::OF_RUNTIMES`](helix_agents_core::guarantee::GuaranteeKind::OF_RUNTIMES), in that order.
    pub fn guarantees(&self) -> Vec<Guarantee> {
        let Settings { lease, store, .. } = &self.settings;
        guarantees::of(*lease, self.own_queue, store.as_deref())
    }

    /// Connects to the server.
    ///
    /// # Errors
    /// [`ErrorCode::ConfigInvalid`] if something is missing, out of range, or cannot work together: a store that no other
    /// process sees among them. [`ErrorCode::StoreUnavailable`] if the server could not be reached in time.
    pub async fn connect(self) -> Result<TemporalRuntime> {
        self.check()?;
        let connection = match &self.connection {
            Some(options) => options.clone(),
            None => self.usual_connection()?,
        };
        let client = match &self.client {
            Some(options) => options.clone(),
            None => ClientOptions::new(&*self.namespace).build(),
        };
        let terms = RunLimits {
            heartbeat_ms: millis(self.settings.lease.max(SHORTEST_HEARTBEAT)),
            attempts: self.attempts,
            parts_per_history: self.parts_per_history,
            follow_ms: millis(FOLLOW),
            execution_ms: self.execution.map(millis),
        };
        let context = self.settings.context()?;
        if context.store.reach() == StoreScope::Machine {
            tracing::warn!(
                "workers on other machines do not see this store; keep all of them on this one"
            );
        }
        let client = Box::pin(server::connect(&connection, &client, self.patience)).await?;
        let server = Server { client, queue: self.queue, prefix: self.prefix, terms };
        Ok(TemporalRuntime::new(context, server, self.own_queue))
    }

    fn check(&self) -> Result<()> {
        let invalid = |message: &'static str| Err(Error::new(ErrorCode::ConfigInvalid, message));
        let store = self.settings.store.as_deref();
        if store.is_some_and(|store| store.reach() == StoreScope::Process) {
            return invalid(
                "no other process sees this store, and runs on Temporal are carried out by several; use a \
                 store that they share",
            );
        }
        if self.attempts == 0 {
            return invalid("a part of a run is tried once at least; set `attempts` to 1 or more");
        }
        if self.parts_per_history == 0 {
            return invalid(
                "a history holds one part at least; set `parts_per_history` to 1 or more",
            );
        }
        if self.queue.is_empty() || self.prefix.is_empty() {
            return invalid("the task queue and the prefix of workflow ids need a name each");
        }
        Ok(())
    }

    fn usual_connection(&self) -> Result<ConnectionOptions> {
        let target = Url::parse(&self.target).map_err(|error| {
            Error::new(ErrorCode::ConfigInvalid, "the target is not a URL")
                .with_context("target", &self.target)
                .with_source(error)
        })?;
        let identity = self.identity.clone().unwrap_or_default();
        Ok(ConnectionOptions::new(target)
            .identity(identity)
            .connect_timeout(Duration::from_secs(5))
            // What goes there and back are ids, which are small.
            .grpc_compression(GrpcCompression::None)
            .build())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
