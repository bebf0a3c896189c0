//! Agents of other servers, used like agents of this process.

mod conversation;
mod model;
mod questions;
mod turn;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::agent::{Agent, AgentBuilder};
use helix_agents_core::budget::PriceTable;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::schema::Schema;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use self::model::RemoteModel;
use crate::client::Client;
use crate::limits::Limits;
use crate::token::Token;

/// The default of [`RemoteAgent::patience`].
const PATIENCE: Duration = Duration::from_secs(60);

/// The default of [`RemoteAgent::retry_every`].
const RETRY_EVERY: Duration = Duration::from_secs(300);

/// The maximum size of a result in a local session, in bytes. The result of an approval repeats the arguments of the call.
const MAX_RESULT: usize = 64 * 1024 * 1024;

/// An agent that runs at an agent server, to be used as a sub-agent or companion of a local agent.
///
/// [`build`](Self::build) returns an ordinary [`Agent`], which works on every runtime and store. Its session in the
/// local store makes no calls of a language model: each of its steps starts or follows a run at the server. The server
/// needs no extra setup.
///
/// # Guarantees
/// * The ids of the remote session, its runs and answers follow from the local session. A request that is repeated
///   after a crash or a lost response takes effect once.
/// * The output is read from the status of the remote session and checked against the type of the local agent. Text,
///   reasoning and tool calls of the remote agent are shown in the stream of the local root session.
/// * Calls of the remote agent that wait for an approval or a client become pending calls of the local session:
///   `remote_approval` and `remote_tool`, with the remote tool and its arguments. An answer goes to the server with the
///   digest of the arguments that were shown.
/// * An interrupt or abort of the local run is passed on. A resumed session resumes the remote one. If the server is
///   unreachable during an abort, the remote run continues.
/// * If the server is unreachable for the [patience](Self::patience), the local session is suspended with the pending
///   call `remote_wait`. After [`retry_every`](Self::retry_every), a sweep resumes the session.
/// * The tokens of a remote turn count in the local session when the turn has ended. The total budget of the local
///   session is sent with every turn.
///
/// The remote agent sees the message of the sub-agent's call and nothing else.
///
/// # Errors of a run
/// A run fails with `sub_agent_failed` if the remote run failed or was aborted, if the server refuses a request for
/// good, or if the remote session was deleted. It fails with `sub_agent_dispatch_failed` if more than eight servers
/// call each other, and with `output_invalid` if the output does not fit.
///
/// # Examples
/// ```
/// use helix_agents_client::RemoteAgent;
/// use helix_agents_core::agent::Agent;
///
/// let poet = RemoteAgent::http("https://agents.example.com", "poet")
///     .description("Writes poems.")
///     .token("secret")
///     .build()?;
/// let editor = Agent::builder("editor")
///     .model("openai:gpt-5")
///     .system_prompt("Edit the magazine. The poet writes its poems.")
///     .sub_agent(&poet)
///     .build()?;
/// # Ok::<(), helix_agents_core::error::Error>(())
/// ```
#[must_use = "call `build` to get the agent"]
pub struct RemoteAgent<O = String> {
    settings: Settings,
    output: fn(AgentBuilder) -> AgentBuilder<O>,
    schema: fn() -> Result<Schema>,
}

/// The settings that do not depend on the type of the output.
struct Settings {
    server: Server,
    agent: String,
    name: String,
    description: String,
    patience: Duration,
    retry_every: Duration,
    prices: PriceTable,
    propagates_trace: bool,
}

enum Server {
    Address { url: String, token: Option<Token> },
    Client(Client),
}

impl<O> fmt::Debug for RemoteAgent<O> {
    /// Omits the URL, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { agent, name, .. } = &self.settings;
        f.debug_struct("RemoteAgent")
            .field("agent", agent)
            .field("name", name)
            .finish_non_exhaustive()
    }
}

impl RemoteAgent {
    /// Describes the agent with this name at the server with this URL. The output is text, unless
    /// [`output`](Self::output) sets another type.
    pub fn http(url: &str, agent: &str) -> Self {
        Self::at(Server::Address { url: url.to_owned(), token: None }, agent)
    }

    /// Describes the agent with this name at the server of a client.
    pub fn with_client(client: Client, agent: &str) -> Self {
        Self::at(Server::Client(client), agent)
    }

    fn at(server: Server, agent: &str) -> Self {
        let settings = Settings {
            server,
            agent: agent.to_owned(),
            name: agent.to_owned(),
            description: String::new(),
            patience: PATIENCE,
            retry_every: RETRY_EVERY,
            prices: PriceTable::new(),
            propagates_trace: false,
        };
        Self { settings, output: AgentBuilder::output::<String>, schema: Schema::of::<String> }
    }
}

impl<O> RemoteAgent<O> {
    /// Sets the local name. Default: the name at the server.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.settings.name);
        self
    }

    /// Sets the description, which the model of a calling agent reads.
    pub fn description(mut self, description: &str) -> Self {
        description.clone_into(&mut self.settings.description);
        self
    }

    /// Sends this token with every request. It has no effect with [`with_client`](RemoteAgent::with_client).
    pub fn token(mut self, token: impl Into<Token>) -> Self {
        if let Server::Address { token: own, .. } = &mut self.settings.server {
            *own = Some(token.into());
        }
        self
    }

    /// Sets the time for which a step tries to reach the server before its session is suspended, in addition to the
    /// repetitions of the client. Default: 60 s.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience;
        self
    }

    /// Sets the time after which a suspended session tries to reach the server again. Default: 5 minutes.
    pub fn retry_every(mut self, interval: Duration) -> Self {
        self.settings.retry_every = interval;
        self
    }

    /// Sets the price of the remote agent's tokens, under the model name `remote:` and the name at the server. Needed
    /// if a budget limits costs.
    pub fn prices(mut self, prices: PriceTable) -> Self {
        self.settings.prices = prices;
        self
    }

    /// Sends the trace of the local turn with the requests that start and resume the remote agent, as the header
    /// `traceparent`. The remote turn then belongs to the trace of the local one. Answers and queued messages do not carry
    /// it. Default: off.
    pub fn propagate_trace(mut self) -> Self {
        self.settings.propagates_trace = true;
        self
    }

    /// Sets the output type. It has to accept what the remote agent returns.
    pub fn output<T>(self) -> RemoteAgent<T>
    where
        T: DeserializeOwned + JsonSchema + 'static,
    {
        let (output, schema) = (AgentBuilder::output::<T>, Schema::of::<T>);
        RemoteAgent { settings: self.settings, output, schema }
    }

    /// Builds the agent, without a request to the server.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`] if the address or the token is not valid, and [`ErrorCode::AgentInvalid`]
    /// with every problem of the definition.
    pub fn build(self) -> Result<Agent<O>> {
        let Settings { server, agent, name, patience, retry_every, .. } = self.settings;
        if retry_every.is_zero() {
            let message = "`retry_every` of a remote agent must be more than zero";
            return Err(Error::new(ErrorCode::AgentInvalid, message).with_context("agent", &name));
        }
        let client = match server {
            Server::Client(client) => client,
            Server::Address { url, token } => {
                let limits = Limits { reconnect: patience, ..Limits::default() };
                let builder = Client::builder(&url).limits(limits);
                let builder = match token {
                    Some(token) => builder.token(token),
                    None => builder,
                };
                builder.build()?
            }
        };
        let schema = (self.schema)()?;
        let model = format!("remote:{agent}");
        let adapter = RemoteModel {
            client,
            agent,
            model: Arc::from(model.as_str()),
            schema,
            patience,
            propagates_trace: self.settings.propagates_trace,
        };
        let builder = Agent::builder(&name)
            .description(&self.settings.description)
            .model(model)
            .adapter(adapter)
            .prices(self.settings.prices)
            // The prompt and the step limit are those of the server's agent.
            .system_prompt("")
            .max_steps(u32::MAX)
            .model_failures(u32::MAX)
            .max_result_bytes(MAX_RESULT)
            // The server's agent cannot correct an output that does not fit the type here.
            .completion_retries(0);
        let tools = questions::tools(retry_every);
        let builder = tools.into_iter().fold(builder, AgentBuilder::tool);
        (self.output)(builder).build()
    }
}
