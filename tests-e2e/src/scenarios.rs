//! The scenarios: an agent, its script, and tools that append to a trace file.

mod alone;
mod family;
mod people;
pub mod remote;
mod signed;
mod slow;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helix_agents::agent::{Agent, AgentBuilder, AgentRegistry, AnyAgent};
use helix_agents::error::Error;
use helix_agents::event::PendingKind;
use helix_agents::llm::LlmAdapter;
use helix_agents::session::{PendingCallView, Submission};
use helix_agents::tool::{Tool, ToolContext};
use helix_agents_test::{Reply, ScriptedLlm};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The first words of the reply to a conversation in which the data of a provider was changed, lost or repeated.
pub const REJECTED: &str = "The provider rejects the conversation";

/// The timeout of calls that must not run twice.
const SHORT_TIMEOUT: Duration = Duration::from_millis(200);

/// One scenario.
#[derive(Debug)]
pub struct Scenario {
    /// The agent of the session.
    pub agent: AnyAgent,
    /// The agent and its sub-agents.
    pub registry: AgentRegistry,
    /// The scripted models of the agents.
    pub llm: Arc<dyn LlmAdapter>,
    /// What follows the end of the turn.
    pub sequel: Sequel,
}

/// The action that follows the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sequel {
    /// No action.
    Nothing,
    /// Forks the session at its first checkpoint, and runs the fork to its end too.
    Fork,
    /// Rewinds the session to its first checkpoint and resumes it.
    Rewind,
    /// Resumes a failed run with a larger budget.
    MoreBudget,
}

impl Scenario {
    fn new(agent: AgentBuilder, llm: impl LlmAdapter) -> Option<Self> {
        let agent = agent.build().ok()?;
        let registry = AgentRegistry::default();
        registry.replace(&agent);
        let sequel = Sequel::Nothing;
        Some(Self { agent: agent.erased(), registry, llm: Arc::new(llm), sequel })
    }

    fn scripted<const N: usize>(agent: AgentBuilder, replies: [Reply; N]) -> Option<Self> {
        Self::new(agent, ScriptedLlm::new(replies))
    }

    fn then(mut self, sequel: Sequel) -> Self {
        self.sequel = sequel;
        self
    }
}

#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct Word {
    word: String,
}

#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
struct Words {
    words: Vec<String>,
}

/// Returns the scenario with this name, whose tools append to this trace file.
#[must_use]
pub fn named(name: &str, trace: &Path) -> Option<Scenario> {
    let kinds =
        [alone::named, people::named, family::named, remote::named, signed::named, slow::named];
    kinds.iter().find_map(|kind| kind(name, trace))
}

fn word(word: &str) -> Value {
    json!({ "word": word })
}

fn worker(trace: &Path) -> AgentBuilder {
    let agent = Agent::builder("worker").system_prompt("You work.").model("scripted");
    agent.state::<Words>().tool(act("act", trace))
}

/// Returns a tool that requires an approval.
fn paying(trace: &Path) -> Tool {
    act("pay", trace).requires_approval().timeout(SHORT_TIMEOUT)
}

/// Returns the user's answer to a call, which is always the same.
///
/// # Errors
/// If the answer cannot be encoded.
pub fn answer(pending: &PendingCallView) -> Result<Submission, Error> {
    let request = format!("answer to {}", pending.reference());
    Ok(answer_with(pending, "blue")?.request(request))
}

/// Returns the answer of one of several users, with that user's word.
///
/// # Errors
/// If the answer cannot be encoded.
pub fn answer_by(pending: &PendingCallView, word: &str) -> Result<Submission, Error> {
    Ok(answer_with(pending, word)?.request(format!("{word} to {}", pending.reference())).by(word))
}

fn answer_with(pending: &PendingCallView, word: &str) -> Result<Submission, Error> {
    let call = pending.reference();
    Ok(match pending.pending.kind {
        PendingKind::Client => Submission::result(call, &json!({ "word": word }))?,
        _ if pending.arguments.text().contains("wine") => {
            Submission::deny(call, Some("no wine".to_owned()))
        }
        _ => Submission::approve(call),
    })
}

/// Returns a tool that appends its word to the state, and each execution to the trace file.
fn act(name: &str, trace: &Path) -> Tool {
    let trace: Arc<PathBuf> = Arc::new(trace.to_owned());
    Tool::function(name, "Acts on a word.", move |input: Word, cx: ToolContext| {
        let trace = Arc::clone(&trace);
        async move {
            leave_trace(&trace, &cx)?;
            cx.progress(format!("acting on {}", input.word), None);
            cx.update_state(|state: &mut Words| state.words.push(input.word.clone()))?;
            Ok(format!("acted on {}", input.word))
        }
    })
}

fn leave_trace(trace: &Path, cx: &ToolContext) -> std::io::Result<()> {
    let call = format!("{}#{}", cx.session(), cx.call());
    let line = json!({ "call": call, "attempt": cx.attempt(), "key": cx.idempotency_key() });
    note_line(trace, &line.to_string())
}

pub(crate) fn note_line(file: &Path, line: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file)?;
    file.write_all(format!("{line}\n").as_bytes())
}
