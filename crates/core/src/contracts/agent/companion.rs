//! Companions: long-lived sub-agents. The calling agent starts them, sends them messages and
//! queries their status.

use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Agent;
use super::definition::AnyAgent;
use crate::error::Result;
pub use crate::event::child::CompanionMode;
use crate::json::Json;
use crate::message::Arguments;
use crate::schema::Schema;
use crate::text::{MAX_QUOTED, excerpt_of};
use crate::tool::{COMPANION_PREFIX, ToolSpec};

/// A long-lived sub-agent. Its session keeps the conversation between calls.
#[derive(Clone)]
pub struct Companion {
    agent: AnyAgent,
    mode: CompanionMode,
}

impl Companion {
    pub(crate) fn new<O>(agent: &Agent<O>, mode: CompanionMode) -> Self {
        Self { agent: agent.erased(), mode }
    }

    /// Returns the companion's agent.
    #[must_use]
    pub fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// Returns whether the caller waits for the companion.
    #[must_use]
    pub fn mode(&self) -> CompanionMode {
        self.mode
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let name = self.agent.name();
        let mut problems = Vec::new();
        if self.agent.description().is_empty() {
            problems.push(format!(
                "companion `{name}` needs a description: the model uses it to decide when to call it"
            ));
        }
        problems
    }
}

impl fmt::Debug for Companion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Companion")
            .field("agent", self.agent.name())
            .field("mode", &self.mode)
            .finish()
    }
}

/// A parsed call of a companion tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompanionCall {
    /// Starts a companion and sends it a message.
    Spawn {
        /// The name of the companion's agent.
        agent: String,
        /// The task for the companion.
        message: String,
        /// The companion's name, if the caller chose one.
        name: Option<String>,
    },
    /// Lists the companions.
    List,
    /// Sends a command to a companion that was started.
    Command {
        /// The companion's name.
        name: String,
        /// The command.
        command: CompanionCommand,
    },
}

/// A command to a companion that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompanionCommand {
    /// Gives the companion a new message.
    Message(String),
    /// Queries the companion's status.
    Status,
    /// Stops the companion permanently.
    Terminate,
    /// Waits until the companion is done and returns its result.
    Wait,
}

#[derive(Deserialize, JsonSchema)]
struct SpawnInput {
    /// The agent to start.
    agent: String,
    /// The task with all the context that is needed: the child sees nothing else.
    message: String,
    /// A name for later calls: letters, digits, `_` or `-`. Generated if omitted.
    name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct SendInput {
    /// The child's name.
    name: String,
    /// The message.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct NameInput {
    /// The child's name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct NothingInput {}

/// Returns the schema of a type. The first call compiles it and stores it in the cell.
fn compiled_once<T: JsonSchema>(cell: &OnceLock<Schema>) -> Result<Schema> {
    if let Some(schema) = cell.get() {
        return Ok(schema.clone());
    }
    let schema = Schema::of::<T>()?;
    Ok(cell.get_or_init(|| schema).clone())
}

/// The tools through which a model controls its companions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompanionTool {
    Spawn,
    Send,
    List,
    Status,
    Terminate,
    Wait,
}

impl CompanionTool {
    const ALL: [Self; 6] =
        [Self::Spawn, Self::Send, Self::List, Self::Status, Self::Terminate, Self::Wait];

    const fn suffix(self) -> &'static str {
        match self {
            Self::Spawn => "spawnAgent",
            Self::Send => "sendMessage",
            Self::List => "listChildren",
            Self::Status => "getChildStatus",
            Self::Terminate => "terminateChild",
            Self::Wait => "waitForResult",
        }
    }

    /// Returns the tools of an agent with these companions.
    fn of(companions: &[Companion]) -> impl Iterator<Item = Self> {
        let any = !companions.is_empty();
        let blocking = companions.iter().any(|companion| companion.mode == CompanionMode::Blocking);
        Self::ALL.into_iter().filter(move |tool| any && (*tool != Self::Wait || blocking))
    }

    /// Returns the tool with this name, if an agent with these companions has it.
    pub(crate) fn find(companions: &[Companion], name: &str) -> Option<Self> {
        let suffix = name.strip_prefix(COMPANION_PREFIX)?;
        Self::of(companions).find(|tool| tool.suffix() == suffix)
    }

    /// Returns the schema of the input. It is compiled once per process: a factory builds an agent
    /// for each session.
    fn schema(self) -> Result<Schema> {
        static SPAWN: OnceLock<Schema> = OnceLock::new();
        static SEND: OnceLock<Schema> = OnceLock::new();
        static NOTHING: OnceLock<Schema> = OnceLock::new();
        static NAME: OnceLock<Schema> = OnceLock::new();
        match self {
            Self::Spawn => compiled_once::<SpawnInput>(&SPAWN),
            Self::Send => compiled_once::<SendInput>(&SEND),
            Self::List => compiled_once::<NothingInput>(&NOTHING),
            Self::Status | Self::Terminate | Self::Wait => compiled_once::<NameInput>(&NAME),
        }
    }

    fn description(self, companions: &[Companion]) -> String {
        let text = match self {
            Self::Spawn => {
                let mut text = "Starts a child agent that stays and can be sent messages. \
                                Agents:"
                    .to_owned();
                for companion in companions {
                    let waits = match companion.mode {
                        CompanionMode::Blocking => "the call returns its result",
                        CompanionMode::NonBlocking => {
                            "the call returns immediately; you get a message when it is done"
                        }
                    };
                    let (name, what) = (companion.agent.name(), companion.agent.description());
                    text.push_str(&format!("\n- {name}: {what} ({waits})"));
                }
                return text;
            }
            Self::Send => {
                "Sends a message to a child: a running child reads it between two steps, a child \
                 that is done starts again with it"
            }
            Self::List => "Lists all children",
            Self::Status => "Returns a child's status, and its output if it is done",
            Self::Terminate => "Stops a child permanently",
            Self::Wait => "Waits until a child is done and returns its result",
        };
        text.to_owned()
    }

    /// Parses the arguments of a call.
    ///
    /// # Errors
    /// Returns a description of what is wrong with the arguments, for the model.
    pub(crate) fn parse(self, arguments: &Json) -> Result<CompanionCall, String> {
        fn typed<T: DeserializeOwned>(arguments: &Json) -> Result<T, String> {
            arguments.to_typed().map_err(|error| {
                format!("the arguments do not match the schema: {}", excerpt_of(error, MAX_QUOTED))
            })
        }
        let of = |arguments, command| {
            let NameInput { name } = typed(arguments)?;
            Ok::<_, String>(CompanionCall::Command { name, command })
        };
        Ok(match self {
            Self::Spawn => {
                let SpawnInput { agent, message, name } = typed(arguments)?;
                CompanionCall::Spawn { agent, message, name }
            }
            Self::Send => {
                let SendInput { name, message } = typed(arguments)?;
                CompanionCall::Command { name, command: CompanionCommand::Message(message) }
            }
            Self::List => CompanionCall::List,
            Self::Status => of(arguments, CompanionCommand::Status)?,
            Self::Terminate => of(arguments, CompanionCommand::Terminate)?,
            Self::Wait => of(arguments, CompanionCommand::Wait)?,
        })
    }
}

/// Returns the companion tools that the model sees.
pub(crate) fn specs(companions: &[Companion]) -> Result<Vec<ToolSpec>> {
    let spec = |tool: CompanionTool| {
        let mut schema = tool.schema()?.json().to_value();
        if let Some(agent) = schema.pointer_mut("/properties/agent") {
            let names: Vec<_> = companions.iter().map(|companion| companion.agent.name()).collect();
            if let Some(members) = agent.as_object_mut() {
                members.insert("enum".into(), json!(names));
            }
        }
        Ok(ToolSpec::new(
            format!("{COMPANION_PREFIX}{}", tool.suffix()),
            Arc::from(tool.description(companions)),
            schema,
        ))
    };
    CompanionTool::of(companions).map(spec).collect()
}

/// Parses a call of a companion tool. Returns `None` for other tools, and a description of the
/// problem if the arguments are invalid.
pub(crate) fn parse(
    companions: &[Companion],
    tool: &str,
    arguments: &Arguments,
) -> Option<Result<CompanionCall, String>> {
    let tool = CompanionTool::find(companions, tool)?;
    Some(match arguments.as_json() {
        Some(arguments) => tool.parse(arguments),
        None => Err("the arguments are not valid JSON; the call was not run".to_owned()),
    })
}

/// Returns `true` if `name` is a valid companion name.
#[must_use]
pub fn is_companion_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}
