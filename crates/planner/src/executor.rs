//! Execution of commands by user code, as one effect of the log.

mod caller;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_core::agent::Completion;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::LlmConfig;
use helix_agents_core::step::build_effective_tools;
use helix_agents_core::tool::{EffectClass, Tool, ToolContext, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

pub use caller::ToolCaller;

use crate::command::Command;
use crate::record::normalise_records;

/// The name of the tool that runs an executor.
pub const EXECUTE_COMMANDS: &str = "execute_commands";

/// The inputs of an executor.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Execution<'a> {
    /// The commands of the round, in order.
    pub commands: &'a [Command],
    /// The number of the round, from 0.
    pub round_index: u32,
    /// The interface that calls the tools.
    pub tools: &'a ToolCaller,
    /// The context of the tool call: state, cancellation, progress.
    pub cx: &'a ToolContext,
}

/// Executes the commands of a round.
///
/// For the runtime, the round is one tool call: its records are appended to the log together, once
/// all of them exist. If the process crashes before that, the whole round is in doubt. It runs
/// again unless one of its tools is [`AtMostOnce`](EffectClass::AtMostOnce).
#[async_trait]
pub trait CommandExecutor: fmt::Debug + Send + Sync + 'static {
    /// Returns one record (or bare result) per command, in order; see [`normalise_records`].
    ///
    /// # Errors
    /// Returns an error that fails every command of the round.
    async fn execute(&self, execution: Execution<'_>) -> Result<Vec<Value>, ToolError>;
}

/// An executor with the tools that it may call. Cheap to clone.
///
/// The agent gets [`tool`](Self::tool) instead of those tools, and
/// [`PlanOptions::executor`](crate::PlanOptions::executor) gets this value.
#[derive(Clone)]
pub struct CommandTool {
    executor: Arc<dyn CommandExecutor>,
    tools: Arc<[Tool]>,
    specs: Arc<[ToolSpec]>,
}

#[derive(Deserialize)]
struct Round {
    #[serde(default)]
    round_index: u32,
    execution_commands: Vec<Command>,
}

impl CommandTool {
    /// Creates an executor for these tools.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ToolInvalid`] if a schema is not valid or two tools have the same name.
    pub fn new(
        executor: impl CommandExecutor,
        tools: impl IntoIterator<Item = Tool>,
    ) -> Result<Self> {
        let tools: Arc<[Tool]> = tools.into_iter().collect();
        for (index, tool) in tools.iter().enumerate() {
            if tools.iter().take(index).any(|other| other.name() == tool.name()) {
                let message = format!("there are two tools named `{}`", tool.name());
                return Err(Error::new(ErrorCode::ToolInvalid, message));
            }
        }
        let set = build_effective_tools(
            &tools,
            Vec::new(),
            None,
            &Completion::Text,
            &LlmConfig::default(),
        )?;
        Ok(Self { executor: Arc::new(executor), tools, specs: set.specs().into() })
    }

    /// Returns the tool for the agent. The timeout of the tool applies to a whole round.
    #[must_use]
    pub fn tool(&self) -> Tool {
        let (executor, tools) = (Arc::clone(&self.executor), Arc::clone(&self.tools));
        let tool = Tool::dynamic(
            EXECUTE_COMMANDS,
            "Executes the commands of a plan.",
            json!({
                "type": "object",
                "properties": {
                    "round_index": { "type": "integer", "minimum": 0 },
                    "execution_commands": { "type": "array", "items": { "type": "object" } },
                },
                "required": ["execution_commands"],
            }),
            move |input, cx| {
                let (executor, tools) = (Arc::clone(&executor), Arc::clone(&tools));
                async move {
                    let round: Round = serde_json::from_value(input)?;
                    let caller = ToolCaller::new(tools, cx.clone());
                    let execution = Execution {
                        commands: &round.execution_commands,
                        round_index: round.round_index,
                        tools: &caller,
                        cx: &cx,
                    };
                    let returned = executor.execute(execution).await?;
                    let records = normalise_records(&round.execution_commands, &returned);
                    Ok(serde_json::to_value(records)?)
                }
            },
        );
        let once = self.tools.iter().any(|tool| tool.effect_class() == EffectClass::AtMostOnce);
        if once { tool.effect(EffectClass::AtMostOnce) } else { tool }
    }

    pub(crate) fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }
}

impl fmt::Debug for CommandTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandTool")
            .field("executor", &self.executor)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
