//! Agents that stay with another agent: it begins them, sends them messages, and asks how they are.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Agent;
use super::definition::AnyAgent;
use crate::error::Result;
use crate::json::Json;
use crate::message::Arguments;
use crate::schema::Schema;
use crate::text::{MAX_QUOTED, excerpt_of};
use crate::tool::{COMPANION_PREFIX, ToolSpec};

/// Whether the caller waits for a companion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompanionMode {
    /// A call that gives it something to do ends when it is done.
    Blocking,
    /// Such a call ends at once, and a message tells the caller when it is done.
    NonBlocking,
}

/// An agent that stays with another one, in a session of its own that keeps what was said.
#[derive(Clone)]
pub struct Companion {
    agent: AnyAgent,
    mode: CompanionMode,
}

impl Companion {
    pub(crate) fn new<S, O>(agent: &Agent<S, O>, mode: CompanionMode) -> Self {
        Self { agent: agent.erased(), mode }
    }

    /// The agent.
    #[must_use]
    pub fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// Whether the caller waits for it.
    #[must_use]
    pub fn mode(&self) -> CompanionMode {
        self.mode
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let name = self.agent.name();
        let mut problems = Vec::new();
        if self.agent.description().is_empty() {
            problems.push(format!("companion `{name}` has no description; models choose by it"));
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

/// What a call of a companion tool asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompanionCall {
    /// To begin one and give it something to do.
    Spawn {
        /// Which agent.
        agent: String,
        /// What to do.
        message: String,
        /// A name of the caller's choice.
        name: Option<String>,
    },
    /// To tell which there are.
    List,
    /// Something of one that was begun.
    Of {
        /// Its name.
        name: String,
        /// What.
        ask: CompanionCommand,
    },
}

/// What is asked of a companion that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompanionCommand {
    /// To do something else.
    Message(String),
    /// How it is.
    Status,
    /// To stop for good.
    Terminate,
    /// Its result, when it is done.
    Wait,
}

#[derive(Deserialize, JsonSchema)]
struct SpawnInput {
    /// Which agent to start.
    agent: String,
    /// What it is to do, with everything it has to know: it sees nothing else.
    message: String,
    /// A name to speak to it by later: letters, digits, `_` or `-`. Without one it is given one.
    name: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct SendInput {
    /// The child's name.
    name: String,
    /// What to tell it.
    message: String,
}

#[derive(Deserialize, JsonSchema)]
struct NameInput {
    /// The child's name.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct NothingInput {}

/// The tools by which a model handles its companions.
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

    /// Those that an agent with these companions has.
    fn of(companions: &[Companion]) -> impl Iterator<Item = Self> {
        let any = !companions.is_empty();
        let blocking = companions.iter().any(|it| it.mode == CompanionMode::Blocking);
        Self::ALL.into_iter().filter(move |tool| any && (*tool != Self::Wait || blocking))
    }

    /// The tool of that name, if an agent with these companions has it.
    pub(crate) fn find(companions: &[Companion], name: &str) -> Option<Self> {
        let suffix = name.strip_prefix(COMPANION_PREFIX)?;
        Self::of(companions).find(|tool| tool.suffix() == suffix)
    }

    fn schema(self) -> Result<Schema> {
        match self {
            Self::Spawn => Schema::of::<SpawnInput>(),
            Self::Send => Schema::of::<SendInput>(),
            Self::List => Schema::of::<NothingInput>(),
            Self::Status | Self::Terminate | Self::Wait => Schema::of::<NameInput>(),
        }
    }

    fn description(self, companions: &[Companion]) -> String {
        let text = match self {
            Self::Spawn => {
                let mut text = "Starts a child agent that stays and can be sent messages. \
                                Agents:"
                    .to_owned();
                for it in companions {
                    let waits = match it.mode {
                        CompanionMode::Blocking => "the call returns its result",
                        CompanionMode::NonBlocking => {
                            "the call returns at once; you are told when it is done"
                        }
                    };
                    let (name, what) = (it.agent.name(), it.agent.description());
                    text.push_str(&format!("\n- {name}: {what} ({waits})"));
                }
                return text;
            }
            Self::Send => {
                "Sends a message to a child: one at work gets it between two steps, one that is \
                 done starts over with it"
            }
            Self::List => "Lists all children",
            Self::Status => "Tells how a child is, and its output if it is done",
            Self::Terminate => "Stops a child for good",
            Self::Wait => "Waits until a child is done and returns its result",
        };
        text.to_owned()
    }

    /// What the call asks for.
    ///
    /// # Errors
    /// What is wrong with the arguments, for the model to read.
    pub(crate) fn parse(self, arguments: &Json) -> Result<CompanionCall, String> {
        fn typed<T: DeserializeOwned>(arguments: &Json) -> Result<T, String> {
            arguments.to_typed().map_err(|error| {
                format!("the arguments do not fit: {}", excerpt_of(error, MAX_QUOTED))
            })
        }
        let of = |arguments, ask| {
            let NameInput { name } = typed(arguments)?;
            Ok::<_, String>(CompanionCall::Of { name, ask })
        };
        Ok(match self {
            Self::Spawn => {
                let SpawnInput { agent, message, name } = typed(arguments)?;
                CompanionCall::Spawn { agent, message, name }
            }
            Self::Send => {
                let SendInput { name, message } = typed(arguments)?;
                CompanionCall::Of { name, ask: CompanionCommand::Message(message) }
            }
            Self::List => CompanionCall::List,
            Self::Status => of(arguments, CompanionCommand::Status)?,
            Self::Terminate => of(arguments, CompanionCommand::Terminate)?,
            Self::Wait => of(arguments, CompanionCommand::Wait)?,
        })
    }
}

/// The companion tools as the model sees them.
pub(crate) fn specs(companions: &[Companion]) -> Result<Vec<ToolSpec>> {
    let spec = |tool: CompanionTool| {
        let mut schema = tool.schema()?.json().to_value();
        if let Some(agent) = schema.pointer_mut("/properties/agent") {
            let names: Vec<_> = companions.iter().map(|it| it.agent.name()).collect();
            if let Some(members) = agent.as_object_mut() {
                members.insert("enum".into(), json!(names));
            }
        }
        Ok(ToolSpec {
            name: format!("{COMPANION_PREFIX}{}", tool.suffix()).into(),
            description: Arc::from(tool.description(companions)),
            input_schema: schema.into(),
            strict: false,
        })
    };
    CompanionTool::of(companions).map(spec).collect()
}

/// What a call of a companion tool asks for, or what is wrong with it.
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

/// Whether a name can be given to a companion.
#[must_use]
pub fn is_companion_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
}
