//! A teller that notes words, and a trace of what it noted: for sessions that fork and go back.

use std::sync::{Arc, Mutex};

use helix_agents_core::agent::Agent;
use helix_agents_core::executor::{AgentExecutor, ForkOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::Session;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};

use super::{Notes, S, Word, fold, teller, word};
use crate::normalise;
use crate::runtime_suite::RuntimeHarness;
use crate::scripted::{Reply, ScriptedLlm};

/// Which calls ran, with their keys.
#[derive(Debug, Clone, Default)]
pub(in crate::runtime_suite) struct Trace(Arc<Mutex<Vec<(String, String)>>>);

impl Trace {
    /// A tool that notes its word in the state, and on the trace.
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

    /// A teller with that tool.
    pub(in crate::runtime_suite) fn scribe(&self) -> Agent<Notes> {
        teller().state::<Notes>().tool(self.tool()).build().unwrap()
    }

    /// What was noted, in order.
    pub(in crate::runtime_suite) fn words(&self) -> String {
        let calls = self.0.lock().unwrap();
        calls.iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// The keys under which it was.
    pub(in crate::runtime_suite) fn keys(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(_, key)| key.clone()).collect()
    }
}

/// A reply that notes a word.
pub(in crate::runtime_suite) fn notes(it: &str) -> Reply {
    Reply::tool_call("note", word(it))
}

/// Two notes, and a word at the end.
pub(in crate::runtime_suite) fn noted() -> ScriptedLlm {
    ScriptedLlm::new([notes("a"), notes("b"), Reply::text("Noted.")])
}

/// A session's transcript, as text.
pub(in crate::runtime_suite) fn transcript(fold: &Session) -> String {
    normalise::transcript(fold.transcript())
}

/// The versions at which a step of the story was closed.
pub(in crate::runtime_suite) async fn checkpoints(harness: &impl RuntimeHarness) -> Vec<u64> {
    fold(harness).await.checkpoints().iter().map(|it| it.version).collect()
}

/// A fork of the story from there.
pub(in crate::runtime_suite) async fn forked(
    executor: &dyn AgentExecutor,
    at: u64,
    name: &str,
) -> SessionId {
    let options = ForkOptions::default().at(at).session(name);
    executor.fork(&S.into(), options).await.unwrap()
}
