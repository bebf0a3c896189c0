//! A scenario with a sub-agent at a server, whose address the worker gets in [`ADDRESS`].

use std::path::Path;

use anyhow::Result;
use helix_agents::RuntimeBuilder as _;
use helix_agents::agent::{Agent, AgentRegistry};
use helix_agents::client::RemoteAgent;
use helix_agents::runtime_local::LocalRuntime;
use helix_agents::server::AgentServer;
use helix_agents::store_memory::MemoryStore;
use helix_agents::tool::{Tool, ToolError};
use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm};
use serde_json::json;

use super::{Scenario, Word, word, worker};

/// The environment variable with the address of the server.
pub const ADDRESS: &str = "HELIX_REMOTE";

/// The name of the scenario.
pub const NAME: &str = "remote";

pub(super) fn named(name: &str, trace: &Path) -> Option<Scenario> {
    if name != NAME {
        return None;
    }
    let address = std::env::var(ADDRESS).ok()?;
    let clerk = RemoteAgent::http(&address, "clerk").description("Helps.").build().ok()?;
    let agent = worker(trace).sub_agent(&clerk);
    let calls = [("subagent__clerk", json!({ "message": "work" })), ("act", word("one"))];
    let replies = [Reply::calls(calls), Reply::text("It is paid.")];
    let llm = RoutingScriptedLlm::new().agent("worker", ScriptedLlm::new(replies));
    Scenario::new(agent, llm)
}

/// Returns a server with the agent `clerk`, whose run needs an approval, and its model.
///
/// # Errors
/// If the server cannot be built.
pub fn server() -> Result<(AgentServer, ScriptedLlm)> {
    let pay = Tool::function("pay", "Pays.", |input: Word, _| async move {
        Ok::<_, ToolError>(format!("paid {}", input.word))
    });
    let clerk = Agent::builder("clerk")
        .system_prompt("You help.")
        .model("scripted")
        .tool(pay.requires_approval())
        .build()?;
    let registry = AgentRegistry::default();
    registry.register(&clerk)?;
    let asks = Reply::tool_call("pay", word("rent")).with_text("One moment.");
    let model = ScriptedLlm::new([asks, Reply::text("The rent is paid.")]);
    let store = MemoryStore::new();
    let runtime = LocalRuntime::builder()
        .store(store.clone())
        .llm(model.clone())
        .registry(registry.clone())
        .build()?;
    let server = AgentServer::builder(std::sync::Arc::new(runtime), registry, store)
        .allow_unauthenticated()
        .build()?;
    Ok((server, model))
}
