//! The builder of a Temporal runtime.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::guarantee::Guarantee;
use helix_agents_core::store::StoreScope;
use helix_agents_runtime::{BuiltEngine, RuntimeBuilder, Settings};
use temporalio_client::{ClientOptions, ConnectionOptions, GrpcCompression, Url};

use crate::guarantees;
use crate::payloads::RunLimits;
use crate::runtime::{TemporalEngine, TemporalRuntime};
use crate::server_client::{self, ServerClient};

const TARGET: &str = "http://localhost:7233";
const NAMESPACE: &str = "default";
const QUEUE: &str = "helix-agents";
const PREFIX: &str = "helix";

/// The default maximum number of work items in a history. A work item adds six events, so a history stays far below the
/// server's limit of about 50,000 events.
const WORK_ITEMS_PER_HISTORY: u32 = 1_000;

const ATTEMPTS: u32 = 12;

/// The shortest heartbeat timeout. With a shorter one, a busy worker would count as crashed.
const SHORTEST_HEARTBEAT: Duration = Duration::from_secs(2);

/// The maximum time that one activity of a parent waits for a child. A waiting parent occupies a worker slot that its
/// child may need.
const FOLLOW_LIMIT: Duration = Duration::from_secs(30);

/// The default time to wait for an unavailable server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A builder for [`TemporalRuntime`]. See [`TemporalRuntime::builder`].
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
    connect_timeout: Duration,
    attempts: u32,
    work_items_per_history: u32,
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
            connect_timeout: CONNECT_TIMEOUT,
            attempts: ATTEMPTS,
            work_items_per_history: WORK_ITEMS_PER_HISTORY,
            execution: None,
            own_queue: false,
        }
    }
}

impl BuiltEngine for TemporalEngine {
    type Builder = TemporalRuntimeBuilder;
}

impl RuntimeBuilder for TemporalRuntimeBuilder {
    fn settings(&mut self) -> &mut Settings {
        &mut self.settings
    }
}

impl TemporalRuntimeBuilder {
    /// Sets the URL of the server. `https` URLs use TLS, and the server's certificate must be trusted by the system,
    /// unless [`connection_options`](Self::connection_options) are set. Default: `http://localhost:7233`.
    pub fn target(mut self, target: impl Into<String>) -> Self {
        self.target = target.into();
        self
    }

    /// Sets connection options such as TLS, API keys and proxies. They replace [`target`](Self::target) and
    /// [`identity`](Self::identity).
    pub fn connection_options(mut self, options: ConnectionOptions) -> Self {
        self.connection = Some(options);
        self
    }

    /// Sets options of the Temporal client, such as a data converter that encrypts histories. They replace
    /// [`namespace`](Self::namespace).
    pub fn client_options(mut self, options: ClientOptions) -> Self {
        self.client = Some(options);
        self
    }

    /// Sets the namespace, which must exist. Default: `default`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Sets the task queue that hands runs to workers. All workers of a queue must know the same agents and use the
    /// same store. Default: `helix-agents`.
    pub fn task_queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// Sets the prefix of workflow ids. Deployments with different stores in the same namespace need different
    /// prefixes. Default: `helix`.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the identity of this process in Temporal. Default: its process id and host name.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Sets how long [`connect`](Self::connect) waits for an unavailable server. Default: 30 s.
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Sets the maximum number of attempts of a work item before its run stops. Attempts fail if the store or the
    /// server is unavailable, or if a worker crashes. Model calls and tools have retries of their own. Default: 12,
    /// with about two and a half minutes of waiting in total.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets the maximum number of work items in a history before the run continues in a new one. The server may suggest
    /// this earlier. Default: 1,000.
    pub fn work_items_per_history(mut self, count: u32) -> Self {
        self.work_items_per_history = count;
        self
    }

    /// Sets the time after which the server ends the workflow of a run, regardless of its state. The run then stops
    /// without ending, and a sweep or `resume` continues the session in a new workflow. Default: no limit.
    pub fn execution_timeout(mut self, timeout: Duration) -> Self {
        self.execution = Some(timeout);
        self
    }

    /// Sets whether only this process polls the task queue, and no later process ever will. With `true`, the runtime
    /// supports values that exist only in one process, such as hooks of a single run (`ExecuteOptions::hooks`), and
    /// after a crash other processes continue the session in a new run. Default: `false`.
    pub fn own_queue(mut self, own: bool) -> Self {
        self.own_queue = own;
        self
    }

    /// Returns the guarantees of a runtime with these options and their reasons, one for each of
    /// [`GuaranteeKind::OF_RUNTIMES`](helix_agents_core::guarantee::GuaranteeKind::OF_RUNTIMES), in that order.
    pub fn guarantees(&self) -> Vec<Guarantee> {
        let Settings { lease, store, .. } = &self.settings;
        guarantees::runtime_guarantees(*lease, self.own_queue, store.as_deref())
    }

    /// Connects to the server.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if a required option is missing, a value is out of range, options
    /// contradict each other, or no other process can access the store. Returns [`ErrorCode::StoreUnavailable`] if the
    /// server could not be reached in time.
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
        let limits = RunLimits {
            heartbeat_ms: millis(self.settings.lease.max(SHORTEST_HEARTBEAT)),
            attempts: self.attempts,
            work_items_per_history: self.work_items_per_history,
            follow_ms: millis(FOLLOW_LIMIT),
            execution_ms: self.execution.map(millis),
        };
        let context = self.settings.context()?;
        if context.store.scope() == StoreScope::Machine {
            tracing::warn!(
                "workers on other machines cannot access this store; run all workers on this machine"
            );
        }
        let client =
            Box::pin(server_client::connect(&connection, &client, self.connect_timeout)).await?;
        let server = ServerClient { client, queue: self.queue, prefix: self.prefix, limits };
        let engine = TemporalEngine::new(server, self.own_queue);
        Ok(TemporalRuntime::new(context, Arc::new(engine)))
    }

    fn check(&self) -> Result<()> {
        let invalid = |message: &'static str| Err(Error::new(ErrorCode::ConfigInvalid, message));
        let store = self.settings.store.as_deref();
        if store.is_some_and(|store| store.scope() == StoreScope::Process) {
            return invalid(
                "this store is visible only to this process, so no other process could continue a run; use a \
                 SQLite, PostgreSQL or Redis store, or the local runtime",
            );
        }
        if self.attempts == 0 {
            return invalid("`attempts` must be at least 1");
        }
        if self.work_items_per_history == 0 {
            return invalid("`work_items_per_history` must be at least 1");
        }
        if self.queue.is_empty() || self.prefix.is_empty() {
            return invalid("the task queue and the prefix of workflow ids must not be empty");
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
            // Payloads are ids, which are small.
            .grpc_compression(GrpcCompression::None)
            .build())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
