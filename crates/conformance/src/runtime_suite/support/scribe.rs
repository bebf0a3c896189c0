//! A root agent that notes words, and a trace of them, for sessions that are forked and rewound.

use std::sync::{Arc, Mutex};

use helix_agents_core::agent::Agent;
use helix_agents_core::executor::{AgentExecutor, ForkOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::Session;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Reply, ScriptedLlm};

use super::{Notes, S, Word, fold, teller, word};
use crate::normalise;
use crate::runtime_suite::RuntimeHarness;

/// The executed calls with their keys.
#[derive(Debug, Clone, Default)]
pub(in crate::runtime_suite) struct Trace(Arc<Mutex<Vec<(String, String)>>>);

impl Trace {
    /// Returns a tool that adds its word to the state and the trace.
    pub(in crate::runtime_suite) fn tool(&self) -> Tool {
        let trace = self.clone();
        Tool::function("note", "Notes a word.", move |input: Word, cx: ToolContext| {
            trace.0.lock().unwrap().push((input.word.clone(), cx.idempotency_key()));
            async move {
                cx.update_state(|state: &mut Notes| state.notes.push(input.word.clone()))?;
                Ok::<_, ToolError>(input.word)
            }
        })
    }

    /// Returns a root agent with that tool.
    pub(in crate::runtime_suite) fn scribe(&self) -> Agent {
        teller().state::<Notes>().tool(self.tool()).build().unwrap()
    }

    /// Returns the noted words, in order.
    pub(in crate::runtime_suite) fn words(&self) -> String {
        let calls = self.0.lock().unwrap();
        calls.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the keys of the calls.
    pub(in crate::runtime_suite) fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(_, key)| key.clone()).collect()
    }
}

/// Returns a reply that notes a word.
pub(in crate::runtime_suite) fn notes(text: &str) -> Reply {
    Reply::tool_call("note", word(text))
}

/// Returns a script of two notes and a text at the end.
pub(in crate::runtime_suite) fn noted() -> ScriptedLlm {
    ScriptedLlm::new([notes("a"), notes("b"), Reply::text("Noted.")])
}

/// Returns the transcript of a session as text.
pub(in crate::runtime_suite) fn transcript(fold: &Session) -> String {
    normalise::transcript(fold.transcript())
}

/// Returns the versions at which a step of the session [`S`](super::S) was closed.
pub(in crate::runtime_suite) async fn checkpoints(harness: &impl RuntimeHarness) -> Vec<u64> {
    fold(harness).await.checkpoints().iter().map(|checkpoint| checkpoint.version).collect()
}

/// Forks the session [`S`](super::S) at a version.
pub(in crate::runtime_suite) async fn forked(
    executor: &dyn AgentExecutor,
    at: u64,
    name: &str,
) -> SessionId {
    let options = ForkOptions::default().checkpoint(at).session(name);
    executor.fork(&S.into(), options).await.unwrap()
}
