//! A root agent and its sub-agents: agents, scripts, and the sessions below the session [`S`](super::S).

use helix_agents_core::agent::{Agent, AgentBuilder};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, Session};
use helix_agents_test::{Reply, RoutingScriptedLlm, ScriptedLlm};
use serde_json::json;

use super::{Report, S, fold_of};
use crate::runtime_suite::RuntimeHarness;

/// Returns a sub-agent or companion, without tools.
pub(in crate::runtime_suite) fn helper(name: &str) -> AgentBuilder<Report> {
    Agent::builder(name)
        .description("Finds things out.")
        .system_prompt("You find out.")
        .model("scripted")
        .output::<Report>()
}

/// Returns a call of a sub-agent.
pub(in crate::runtime_suite) fn delegate(name: &str) -> (String, serde_json::Value) {
    (format!("subagent__{name}"), json!({"message": "find out"}))
}

/// Returns a reply that calls these sub-agents.
pub(in crate::runtime_suite) fn asks(names: &[&str]) -> Reply {
    let calls: Vec<_> = names.iter().map(|name| delegate(name)).collect();
    Reply::calls(calls.iter().map(|(name, input)| (name.as_str(), input.clone())))
}

/// Returns the output of a helper.
pub(in crate::runtime_suite) fn report() -> Reply {
    Reply::finish(json!({"answer": "yes", "score": 1}))
}

/// Returns the scripts of the root agent and its helper.
pub(in crate::runtime_suite) fn scripts<const T: usize, const H: usize>(
    teller: [Reply; T],
    helper: [Reply; H],
) -> RoutingScriptedLlm {
    RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new(teller))
        .agent("helper", ScriptedLlm::new(helper))
}

/// Returns the session of the sub-agent that a call of the session [`S`](super::S) starts.
pub(in crate::runtime_suite) fn child(call: &str) -> SessionId {
    SessionId::of_call(&S.into(), &call.into())
}

/// Returns the session of the companion with that name.
pub(in crate::runtime_suite) fn companion(name: &str) -> SessionId {
    SessionId::of_companion(&S.into(), name)
}

/// Returns the status of a session's last run.
pub(in crate::runtime_suite) fn status(session: &Session) -> RunStatus {
    session.last_run().unwrap().status
}

/// Returns the status of a stored session's last run.
pub(in crate::runtime_suite) async fn stored_status(
    harness: &impl RuntimeHarness,
    session: &SessionId,
) -> RunStatus {
    status(&fold_of(harness, session).await)
}
