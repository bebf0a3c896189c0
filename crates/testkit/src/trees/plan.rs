//! Random families of agents: their relations and their tools.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_conformance::rng::Rng;
use helix_agents_core::agent::{Agent, AgentBuilder, AgentRegistry, AnyAgent, CompanionMode};
use helix_agents_core::event::Event;
use helix_agents_core::id::{CallId, SessionId};
use helix_agents_core::session::load_events;
use helix_agents_core::store::StateStore;
use helix_agents_core::tool::{EffectClass, ReconcileOutcome, Tool, ToolContext, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::hooks::{HookCall, Listener};
use super::life::RunProcesses;
use super::notes::{Execution, Records};

/// The relation of an agent to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Root,
    SubAgent,
    Companion(CompanionMode),
}

/// One agent of a family.
#[derive(Debug, Clone)]
pub struct Node {
    /// The name of the agent.
    pub name: String,
    pub(super) place: Place,
    /// Whether it ends a turn with a tool of its own.
    pub(super) finish_tool: bool,
    /// Number of answers that it gives before it ends.
    pub(super) answers: usize,
    pub(super) below: Vec<Self>,
}

impl Node {
    fn new(name: String, place: Place, depth: usize, rng: &mut Rng) -> Self {
        // Deeper agents have fewer children.
        let count = match depth {
            0 => 1 + rng.below(2),
            1 => rng.below(3),
            2 => rng.below(2),
            _ => 0,
        };
        let below = (0..count).map(|index| {
            let place = match rng.below(4) {
                0 | 1 => Place::SubAgent,
                2 => Place::Companion(CompanionMode::Blocking),
                _ => Place::Companion(CompanionMode::NonBlocking),
            };
            Self::new(format!("{name}{}", index + 1), place, depth + 1, rng)
        });
        let below = below.collect();
        let answers = 1 + rng.below(if depth == 0 { 3 } else { 2 });
        Self { name, place, finish_tool: rng.once_in(3), answers, below }
    }

    /// Creates the family of a seed, with up to three generations below the root.
    pub(super) fn of(seed: u64) -> Self {
        Self::new("a".to_owned(), Place::Root, 0, &mut Rng::of((seed, "family")))
    }

    pub(super) fn find(&self, name: &str) -> Option<&Self> {
        if self.name == name {
            return Some(self);
        }
        self.below.iter().find_map(|node| node.find(name))
    }

    /// Returns `true` if a turn ends with a typed output.
    pub(super) fn has_output(&self) -> bool {
        self.place != Place::Root || self.finish_tool
    }
}

/// The state of every agent.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(super) struct Done {
    /// The calls of `work` that succeeded.
    pub(super) calls: Vec<String>,
    /// The long words that `work` received. They make the state large.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) words: Vec<String>,
}

/// Words that are longer than this are kept in the state.
const LONG_WORD: usize = 100;

/// The environment of the tools.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The seed of the story.
    pub seed: u64,
    /// The executions of tools.
    pub trace: Arc<Records<Execution>>,
    /// The calls of hooks.
    pub hook_calls: Arc<Records<HookCall>>,
    /// The store itself, which no crash affects.
    pub store: Arc<dyn StateStore>,
    /// The processes of runs.
    pub lives: RunProcesses,
    /// Number of calls of a step that run concurrently.
    pub tool_concurrency: usize,
    /// The build of the program, which determines prompts, descriptions and tools that no model calls.
    pub build: u32,
}

/// The agents of a family by name.
#[derive(Debug, Clone)]
pub struct Family {
    /// The root agent.
    pub root: Node,
    agents: BTreeMap<String, AnyAgent>,
    /// All agents, for runtimes.
    pub registry: AgentRegistry,
}

impl Family {
    /// Creates the family of the scene's seed.
    ///
    /// # Panics
    /// If an agent cannot be built.
    #[must_use]
    pub fn new(scene: &Scene) -> Self {
        let root = Node::of(scene.seed);
        let registry = AgentRegistry::default();
        let mut agents = BTreeMap::new();
        let builder = scene.builder(&root, &scene.tools(), &mut agents);
        let agent = if root.has_output() {
            let agent = builder.output_schema(report()).build().unwrap();
            registry.replace(&agent);
            agent.erased()
        } else {
            let agent = builder.build().unwrap();
            registry.replace(&agent);
            agent.erased()
        };
        agents.insert(root.name.clone(), agent);
        Self { root, agents, registry }
    }

    /// Returns the agents, ordered by name.
    pub fn agents(&self) -> impl Iterator<Item = &AnyAgent> {
        self.agents.values()
    }

    /// Returns the agent with that name.
    ///
    /// # Panics
    /// If no agent has that name.
    #[must_use]
    pub fn agent(&self, name: &str) -> AnyAgent {
        Arc::clone(&self.agents[name])
    }
}

/// The timeout of calls that must not run twice. The next owner waits this long for the previous one.
const SHORT: Duration = Duration::from_millis(400);

fn word() -> Value {
    json!({
        "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]
    })
}

fn report() -> Value {
    json!({
        "type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]
    })
}

impl Scene {
    /// Creates the tools that every agent of the family has.
    fn tools(&self) -> Vec<Tool> {
        let ask = |name: &str, deadline: Duration| {
            Tool::client_dynamic(name, "Asks.", word()).deadline(deadline)
        };
        let once =
            |name: &'static str| self.tool(name).effect(EffectClass::AtMostOnce).timeout(SHORT);
        let mut tools = vec![
            self.tool("work"),
            self.tool("fail"),
            once("wire"),
            self.reconciled(once("pay")),
            self.tool("sign").requires_approval().editable().timeout(SHORT),
            self.tool("stamp").requires_approval().effect(EffectClass::Idempotent),
            ask("ask", Duration::from_secs(3600)),
            ask("hurry", Duration::from_millis(1)),
        ];
        if self.build > 0 {
            tools.push(self.tool("unused"));
        }
        tools
    }

    fn builder(
        &self,
        node: &Node,
        tools: &[Tool],
        known: &mut BTreeMap<String, AnyAgent>,
    ) -> AgentBuilder {
        let build = self.build;
        let mut agent = Agent::builder(&node.name)
            .description(&format!("Works, as of build {build}."))
            .system_prompt(format!("You work, as of build {build}."))
            .model("trees")
            .state::<Done>()
            .tool_concurrency(self.tool_concurrency)
            .tools(tools.iter().cloned());
        if node.place == Place::Root {
            agent = agent.hooks(Listener {
                hook_calls: Arc::clone(&self.hook_calls),
                lives: self.lives.clone(),
            });
        }
        if node.finish_tool {
            agent = agent.tool(self.tool("submit").finish_with());
        }
        for child in &node.below {
            let builder = self.builder(child, tools, known);
            let of_child = builder.output_schema(report()).build().unwrap();
            known.insert(child.name.clone(), of_child.erased());
            agent = match child.place {
                Place::Companion(mode) => agent.companion(&of_child, mode),
                Place::Root | Place::SubAgent => agent.sub_agent(&of_child),
            };
        }
        agent
    }

    /// Creates a tool that records its execution, and whose process may crash before, during and after it.
    fn tool(&self, name: &'static str) -> Tool {
        let scene = self.clone();
        Tool::dynamic(name, "Works.", word(), move |input, cx| {
            let scene = scene.clone();
            async move { scene.act(name, &input, &cx).await }
        })
    }

    async fn act(&self, name: &str, input: &Value, cx: &ToolContext) -> Result<Value, ToolError> {
        self.lives.crash_point(cx.run()).await;
        let recorded = self.is_recorded(cx.session(), cx.call()).await;
        self.trace.note(Execution {
            session: cx.session().clone(),
            run: cx.run().clone(),
            call: cx.call().clone(),
            tool: name.to_owned(),
            key: cx.idempotency_key(),
            attempt: cx.attempt(),
            recorded,
        });
        self.lives.tick(cx.run()).await;
        self.lives.linger(cx.run()).await;
        if name == "fail" {
            return Err(ToolError::new("it failed"));
        }
        if name == "work" {
            let word = input.get("word").and_then(Value::as_str).unwrap_or_default();
            cx.update_state(|done: &mut Done| {
                done.calls.push(cx.call().to_string());
                if word.len() > LONG_WORD {
                    done.words.push(word.to_owned());
                }
            })?;
        }
        Ok(result_of(cx.session(), cx.call()))
    }

    /// Lets the tool find out from the trace whether a call was executed.
    fn reconciled(&self, tool: Tool) -> Tool {
        let trace = Arc::clone(&self.trace);
        tool.reconcile(move |_, cx| {
            let acted = trace.all().iter().any(|execution| execution.key == cx.idempotency_key());
            let found = if acted {
                ReconcileOutcome::Completed(result_of(cx.session(), cx.call()))
            } else {
                ReconcileOutcome::NotExecuted
            };
            async move { found }
        })
    }

    async fn is_recorded(&self, session: &SessionId, call: &CallId) -> bool {
        let log = load_events(&*self.store, session, 0).await.unwrap_or_default();
        log.iter()
            .any(|recorded| matches!(&recorded.event, Event::ToolFinished(finish) if finish.call == *call))
    }
}

/// Returns the result of a tool, which also fits the output schemas.
pub(super) fn result_of(session: &SessionId, call: &CallId) -> Value {
    // Some results are large, so that several do not fit into one small append.
    let is_large = Rng::of((session.as_str(), call.as_str())).once_in(4);
    let more = if is_large { "x".repeat(1_800) } else { String::new() };
    json!({ "answer": format!("did {session}#{call}{more}") })
}
