//! A teller and whom it calls upon: agents, scripts, and the sessions below the story.

use helix_agents_core::agent::{Agent, AgentBuilder};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, Session};
use serde_json::json;

use super::{Report, S, fold_of};
use crate::runtime_suite::RuntimeHarness;
use crate::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};

/// An agent that others may call upon, as yet without tools.
pub(in crate::runtime_suite) fn helper(name: &str) -> AgentBuilder<(), Report> {
    Agent::builder(name)
        .description("Finds things out.")
        .system_prompt("You find out.")
        .model("scripted")
        .output::<Report>()
}

/// The call of a sub-agent.
pub(in crate::runtime_suite) fn delegate(name: &str) -> (String, serde_json::Value) {
    (format!("subagent__{name}"), json!({"message": "find out"}))
}

/// A reply that calls upon these sub-agents.
pub(in crate::runtime_suite) fn asks(names: &[&str]) -> Reply {
    let calls: Vec<_> = names.iter().map(|name| delegate(name)).collect();
    Reply::calls(calls.iter().map(|(name, input)| (name.as_str(), input.clone())))
}

/// The output of a helper.
pub(in crate::runtime_suite) fn report() -> Reply {
    Reply::finish(json!({"answer": "yes", "score": 1}))
}

/// What the teller and its helper say.
pub(in crate::runtime_suite) fn scripts<const T: usize, const H: usize>(
    teller: [Reply; T],
    helper: [Reply; H],
) -> RoutingScriptedLlm {
    RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new(teller))
        .agent("helper", ScriptedLlm::new(helper))
}

/// The session of the sub-agent that a call of the story begins.
pub(in crate::runtime_suite) fn child(call: &str) -> SessionId {
    SessionId::of_call(&S.into(), &call.into())
}

/// The session of the story's companion of that name.
pub(in crate::runtime_suite) fn companion(name: &str) -> SessionId {
    SessionId::of_companion(&S.into(), name)
}

/// How the last run of a session stands.
pub(in crate::runtime_suite) fn status(session: &Session) -> RunStatus {
    session.last_run().unwrap().status
}

/// The same, of a session that is looked up.
pub(in crate::runtime_suite) async fn resting(
    harness: &impl RuntimeHarness,
    session: &SessionId,
) -> RunStatus {
    status(&fold_of(harness, session).await)
}
