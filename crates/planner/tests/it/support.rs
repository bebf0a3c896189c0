//! Shared test helpers: an agent with a few tools, plans as text, and runs.

pub(crate) mod server;
pub(crate) mod wall;

use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use helix_agents_core::agent::{Agent, AgentBuilder};
use helix_agents_core::executor::{AgentExecutor, AgentResult, ExecuteOptions, Input, RunHandle};
use helix_agents_core::llm::LlmAdapter;
use helix_agents_core::message::{Message, SharedMessage};
use helix_agents_core::session::Session;
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_planner::{PlanOptions, PlanningLlm};
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_runtime_local::RuntimeBuilder as _;
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{PlanningScript, Reply, ScriptedLlm, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A tool input with one member.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct Word {
    /// Any word.
    pub(crate) word: String,
}

/// The words that a tool was called with.
pub(crate) type Heard = Arc<Mutex<Vec<String>>>;

/// A tool that returns a word in capitals, and fails on an empty one.
pub(crate) fn shout(heard: &Heard) -> Tool {
    let heard = Arc::clone(heard);
    Tool::function("shout", "Says a word loudly.", move |input: Word, _: ToolContext| {
        heard.lock().unwrap().push(input.word.clone());
        async move {
            if input.word.is_empty() {
                return Err(ToolError::new("nothing to shout"));
            }
            Ok(input.word.to_uppercase())
        }
    })
}

pub(crate) fn teller() -> AgentBuilder {
    Agent::builder("teller").system_prompt("You tell.").model("scripted")
}

/// Returns a command of `shout`.
pub(crate) fn shouting(purpose: &str, word: &str) -> Value {
    json!({
        "purpose": purpose, "tool_name": "shout", "tool_kwargs": { "word": word },
        "todo_suggestion": "tell",
    })
}

/// Returns a plan that executes these commands.
pub(crate) fn execute(commands: impl IntoIterator<Item = Value>) -> Reply {
    let commands: Vec<_> = commands.into_iter().collect();
    Reply::text(json!({ "next_action": "execute", "execution_commands": commands }).to_string())
}

/// Returns a plan that lets the agent answer.
pub(crate) fn respond() -> Reply {
    Reply::text(json!({ "next_action": "response", "execution_commands": [] }).to_string())
}

/// Returns a model with these plans, which answers "done".
pub(crate) fn script(plans: impl IntoIterator<Item = Reply>) -> PlanningScript {
    PlanningScript::new(plans, ScriptedLlm::new([Reply::text("done")]))
}

/// Returns the planning adapter around a model, with these options for the agent.
pub(crate) fn planning<O>(
    model: &(impl LlmAdapter + Clone),
    agent: &Agent<O>,
    options: PlanOptions,
) -> PlanningLlm {
    PlanningLlm::new(model.clone()).plan(agent.definition(), options).unwrap()
}

pub(crate) fn runtime(llm: impl LlmAdapter) -> LocalRuntime {
    LocalRuntime::builder().store(MemoryStore::default()).llm(llm).build().unwrap()
}

/// Starts the session `story`.
pub(crate) async fn begin<O>(
    runtime: &LocalRuntime,
    agent: &Agent<O>,
    input: impl Into<Input>,
) -> RunHandle {
    let options = ExecuteOptions::default().session("story");
    runtime.execute(agent.erased(), input.into(), options).await.unwrap()
}

/// Runs a turn of the session `story` to its end.
pub(crate) async fn run<O>(
    runtime: &LocalRuntime,
    agent: &Agent<O>,
    input: impl Into<Input>,
) -> (AgentResult, Session, RunHandle) {
    let handle = begin(runtime, agent, input).await;
    let result = within(handle.result()).await.unwrap();
    let session = handle.load_session().await.unwrap();
    (result, session, handle)
}

/// Runs a turn with a loop over `shout`, which must complete.
pub(crate) async fn story(model: &PlanningScript, options: PlanOptions) -> Session {
    let agent = teller().tool(shout(&Heard::default())).build().unwrap();
    let runtime = runtime(planning(model, &agent, options));
    let (result, session, _) = run(&runtime, &agent, "go").await;
    assert_eq!(
        result.output.map(|output| output.to_value()),
        Some("done".into()),
        "{:?}",
        result.error
    );
    session
}

/// Returns the `info` of every planning request.
pub(crate) fn infos(model: &PlanningScript) -> Vec<Value> {
    inputs(model).into_iter().map(|inputs| inputs["info"].clone()).collect()
}

/// Returns the message of every planning request.
pub(crate) fn inputs(model: &PlanningScript) -> Vec<Value> {
    let seen = model.plans_seen();
    seen.iter().map(|(_, seen)| serde_json::from_str(&texts(&seen.messages)[0]).unwrap()).collect()
}

/// Returns the texts of messages.
pub(crate) fn texts(messages: &[SharedMessage]) -> Vec<String> {
    let text = |message: &SharedMessage| match &**message {
        Message::System { content } => content.clone(),
        Message::User(message) => message.content.clone(),
        Message::Assistant(message) => message.content.clone().unwrap_or_default(),
        Message::Tool(message) => message.content.clone(),
    };
    messages.iter().map(text).collect()
}

/// Returns the results that were passed to an answer.
#[track_caller]
pub(crate) fn action_results(messages: &[SharedMessage]) -> Value {
    let texts = texts(messages);
    let text = texts.iter().find_map(|text| text.strip_prefix("## action_results\n\n"));
    let text =
        text.expect("the messages contain no results").split_once("\n\n## extra_instruction");
    serde_json::from_str(text.unwrap().0).unwrap()
}

/// Returns every chunk of a run that has ended.
pub(crate) async fn chunks(handle: &RunHandle) -> Vec<ChunkKind> {
    let mut stream = handle.stream().await.unwrap();
    let mut chunks = Vec::new();
    while let Some(chunk) = within(stream.next()).await {
        chunks.push(chunk.unwrap().chunk.kind.clone());
    }
    chunks
}

/// Returns every `custom` chunk with that name.
pub(crate) fn custom(chunks: &[ChunkKind], name: &str) -> Vec<Value> {
    let data = chunks.iter().filter_map(|chunk| match chunk {
        ChunkKind::Custom { name: own, data } if own == name => Some(data),
        _ => None,
    });
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}
