//! A server with scripted models.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_client::{Client, ClientBuilder, Limits as ClientLimits};
use helix_agents_core::agent::{Agent, AgentRegistry};
use helix_agents_core::executor::AgentExecutor;
use helix_agents_core::tool::Tool;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_server::{AgentServer, Limits, Tokens, token_digest};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{ScriptedLlm, within};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The token of the user `ann`.
pub(crate) const TOKEN: &str = "token-ann-5c1f";

/// A text of many chunks.
pub(crate) const TEXT: &str =
    "The quick brown fox jumps over the lazy dog, and the dog dreams of a slow red squirrel.";

/// The deadline of calls of `hurry`.
const SOON: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
struct Question {
    /// The question.
    #[serde(rename = "question")]
    _question: String,
}

#[derive(Deserialize, JsonSchema)]
struct Payment {
    /// The recipient.
    to: String,
}

/// A served server.
pub(crate) struct World {
    pub(crate) address: SocketAddr,
    pub(crate) server: AgentServer,
    pub(crate) model: ScriptedLlm,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

fn agent() -> Agent {
    let pay = |payment: Payment, _| async move { Ok(format!("paid {}", payment.to)) };
    Agent::builder("clerk")
        .system_prompt("You are a clerk.")
        .model("scripted")
        .tool(Tool::client::<Question>("ask", "Ask the user."))
        .tool(Tool::client::<Question>("hurry", "Ask the user.").deadline(SOON))
        .tool(Tool::function("pay", "Pay someone.", pay).requires_approval())
        .tool(Tool::function("give", "Give someone money.", pay).requires_approval().editable())
        .build()
        .unwrap()
}

/// Returns a server with the agent `clerk` and the users `ann` and `bob`.
fn server_on(store: &MemoryStore, model: &ScriptedLlm, limits: Limits) -> AgentServer {
    let registry = AgentRegistry::default();
    registry.register(&agent()).unwrap();
    let runtime = LocalRuntime::builder()
        .store(store.clone())
        .llm(model.clone())
        .registry(registry.clone())
        .grace(Duration::from_millis(50))
        .build()
        .unwrap();
    let executor: Arc<dyn AgentExecutor> = Arc::new(runtime);
    let entry = |name, role, token| {
        let digest = token_digest(token);
        format!("[[token]]\nname = \"{name}\"\nrole = \"{role}\"\nsha256 = \"{digest}\"\n")
    };
    // Only operators read logs.
    let tokens = entry("ann", "admin", TOKEN) + &entry("bob", "user", "token-bob");
    let tokens = Tokens::parse(&tokens).unwrap();
    let builder = AgentServer::builder(executor, registry, store.clone());
    builder.limits(limits).sweep(Duration::from_millis(100)).bearer(tokens).build().unwrap()
}

impl World {
    pub(crate) async fn new(model: ScriptedLlm) -> Self {
        Self::with(model, Limits::default()).await
    }

    pub(crate) async fn with(model: ScriptedLlm, limits: Limits) -> Self {
        Self::on(&MemoryStore::new(), model, limits).await
    }

    pub(crate) async fn on(store: &MemoryStore, model: ScriptedLlm, limits: Limits) -> Self {
        let server = server_on(store, &model, limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let served = server.clone();
        let task = tokio::spawn(async move {
            served.serve(listener, async { drop(stopped.await) }).await.unwrap();
        });
        Self { address, server, model, stop: Some(stop), task: Some(task) }
    }

    /// Returns the client of `ann`.
    pub(crate) fn client(&self) -> Client {
        builder(self.address).build().unwrap()
    }

    /// Shuts the server down and waits until it has stopped.
    pub(crate) async fn stopped(&mut self) {
        drop(self.stop.take());
        within(self.task.take().unwrap()).await.unwrap();
    }
}

/// Returns the builder of a client of `ann` with short pauses.
pub(crate) fn builder(address: SocketAddr) -> ClientBuilder {
    Client::builder(&format!("http://{address}")).token(TOKEN).limits(fast())
}

/// Returns limits with short pauses.
pub(crate) fn fast() -> ClientLimits {
    let mut limits = ClientLimits::default();
    limits.base_wait = Duration::from_millis(5);
    limits.max_wait = Duration::from_secs(2);
    limits.reconnect = Duration::from_secs(20);
    limits
}
