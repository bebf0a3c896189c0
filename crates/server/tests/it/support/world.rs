//! A server with a runtime and a store.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::{Agent, AgentRegistry};
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::store::StateStore;
use helix_agents_core::stream::StreamManager;
use helix_agents_core::tool::{Tool, ToolError};
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_server::{AgentServer, Limits, Tokens, token_digest};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{ScriptedLlm, within};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Client;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Question {
    /// The question.
    #[serde(rename = "question")]
    _question: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Payment {
    /// The recipient.
    to: String,
}

/// Returns the agent `clerk`, with a client tool `ask`, a tool `pay` that requires approval, and a tool `print` that
/// fails.
pub(crate) fn agent() -> Agent {
    Agent::builder("clerk")
        .system_prompt("You are a clerk.")
        .model("scripted")
        .tool(Tool::client::<Question>("ask", "Ask the user."))
        .tool(Tool::client::<Question>("count", "Ask for a number.").output_schema::<u32>())
        .tool(pay())
        .tool(print())
        .build()
        .unwrap()
}

/// Returns a tool that requires approval.
pub(crate) fn pay() -> Tool {
    let pay = |payment: Payment, _| async move { Ok(format!("paid {}", payment.to)) };
    Tool::function("pay", "Pay someone.", pay).requires_approval()
}

/// Returns a tool whose error names a host.
fn print() -> Tool {
    let print = |_: Question, _| async move {
        Err::<String, _>(ToolError::new("10.0.0.7 refused the connection"))
    };
    Tool::function("print", "Prints.", print)
}

/// The tokens of the users `ann` and `bob`, of the operator `eve`, and a token of `ann` that only reads.
pub(crate) fn token_file() -> Tokens {
    let entry = |name, role, token| {
        let digest = token_digest(token);
        format!("[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{digest}\"\n")
    };
    let file = entry("ann", "user", "token-ann")
        + &entry("bob", "user", "token-bob")
        + &entry("eve", "admin", "token-eve")
        + &entry("ann", "reader", "token-ann-reads");
    Tokens::parse(&file).unwrap()
}

/// The settings of a [`World`].
#[derive(Debug)]
pub(crate) struct WorldBuilder {
    pub(crate) limits: Limits,
    pub(crate) origin: Option<&'static str>,
    pub(crate) sweep: Option<Duration>,
    pub(crate) shows_internal_errors: bool,
}

/// A served server.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) server: AgentServer,
    pub(crate) model: ScriptedLlm,
    pub(crate) runtime: Arc<LocalRuntime>,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl WorldBuilder {
    pub(crate) fn new() -> Self {
        Self { limits: Limits::default(), origin: None, sweep: None, shows_internal_errors: false }
    }

    pub(crate) async fn serve<S>(self, store: S, model: ScriptedLlm) -> World
    where
        S: StateStore + StreamManager + Clone,
    {
        let registry = AgentRegistry::default();
        registry.register(&agent()).unwrap();
        let runtime = LocalRuntime::builder()
            .store(store.clone())
            .llm(model.clone())
            .registry(registry.clone())
            .grace(Duration::from_millis(50))
            .build()
            .unwrap();
        let runtime = Arc::new(runtime);
        let executor: Arc<dyn AgentExecutor> = Arc::clone(&runtime) as _;
        let mut builder =
            AgentServer::builder(executor, registry, store).limits(self.limits).no_sweep();
        if let Some(interval) = self.sweep {
            builder = builder.sweep(interval);
        }
        if self.shows_internal_errors {
            builder = builder.show_internal_errors();
        }
        let mut builder = builder.bearer(token_file());
        if let Some(origin) = self.origin {
            builder = builder.origin(origin);
        }
        let server = builder.build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = server.clone();
        let task = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            served.serve(listener, stopped).await.unwrap();
        });
        World { address, server, model, runtime, stop: Some(stop), task: Some(task) }
    }
}

impl World {
    /// Serves `clerk` on a store in memory.
    pub(crate) async fn new(model: ScriptedLlm) -> Self {
        WorldBuilder::new().serve(MemoryStore::new(), model).await
    }

    /// Returns the client of a user.
    pub(crate) fn client(&self, user: &str) -> Client {
        Client::new(self.address, Some(&format!("token-{user}")))
    }

    /// Returns a client without credentials.
    pub(crate) fn stranger(&self) -> Client {
        Client::new(self.address, None)
    }

    /// Requests the shutdown without waiting for it.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    /// Shuts the server down and waits until it has stopped.
    pub(crate) async fn stopped(&mut self) {
        self.stop();
        within(self.task.take().unwrap()).await.unwrap();
    }
}
