//! Builds the agent that an agent file describes.

use std::path::PathBuf;
use std::sync::Arc;

use helix_agents_core::agent::{Agent, AgentBuilder, AnyAgent};
use helix_agents_core::clock::Clock;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::{LlmAdapter, LlmConfig};
use helix_agents_planner::{PlanOptions, PlanningLlm};
use helix_agents_tools::note::{NoteTool, Notes};
use helix_agents_tools::text::{one_line, shortened};

use crate::config::SettingsConfig;
use crate::document::AgentFile;
use crate::plan;
use crate::source_map::FILE;
use crate::tools::tools;

/// The maximum length of an error message from core that is shown.
const MAX_CHARS: usize = 2000;

/// The choices that a program makes when it builds the agent of an agent file.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    clock: Arc<dyn Clock>,
    model: Option<String>,
    files: Option<PathBuf>,
}

impl BuildOptions {
    /// Uses this clock for the tool `current_time` and for the time limit of a planner.
    pub fn new(clock: impl Clock) -> Self {
        Self { clock: Arc::new(clock), model: None, files: None }
    }

    /// Sets the model, as `provider:model`. Default: the model that the agent file names, else the default model of
    /// the adapter.
    #[must_use]
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the folder that the file tools access. Default: the folder that the agent file names. Unlike that one,
    /// this can be any folder.
    #[must_use]
    pub fn files(mut self, folder: impl Into<PathBuf>) -> Self {
        self.files = Some(folder.into());
        self
    }
}

/// The agent of an agent file, with its planner if it has one.
#[derive(Debug)]
pub struct BuiltAgent {
    agent: AnyAgent,
    plan: Option<PlanOptions>,
}

impl BuiltAgent {
    /// Returns the agent.
    #[must_use]
    pub fn agent(&self) -> &AnyAgent {
        &self.agent
    }

    /// Returns the adapter with which the agent runs: the given one, wrapped in a [`PlanningLlm`] if the agent file
    /// has a `[planner]` table.
    ///
    /// # Errors
    /// Returns the errors of [`PlanningLlm::plan`], such as [`ErrorCode::ModelUnknown`] for the model of the planner.
    pub fn adapter(&self, model: Arc<dyn LlmAdapter>) -> Result<Arc<dyn LlmAdapter>> {
        match &self.plan {
            Some(plan) => Ok(Arc::new(PlanningLlm::around(model).plan(&self.agent, plan.clone())?)),
            None => Ok(model),
        }
    }
}

impl From<BuiltAgent> for AnyAgent {
    fn from(built: BuiltAgent) -> Self {
        built.agent
    }
}

impl AgentFile {
    /// Builds the agent.
    ///
    /// # Errors
    /// Returns [`ErrorCode::AgentInvalid`], with every problem found.
    pub fn build(&self, options: &BuildOptions) -> Result<BuiltAgent> {
        let config = &self.config;
        let model = options.model.as_deref().or(self.model()).unwrap_or_default();
        let builder = Agent::builder(&config.name)
            .description(&config.description)
            .model(model)
            .llm(|llm| config.settings.apply(llm))
            .max_steps(config.limits.max_steps)
            .completion_retries(config.limits.completion_retries)
            .tool_concurrency(config.limits.tool_concurrency)
            .tool_timeout(config.limits.tool_timeout.0)
            .max_result_bytes(config.limits.max_result_bytes)
            .budget(config.limits.budget());
        let builder = tools(self, options.files.as_deref(), &options.clock)?.add_to(builder);
        let builder = match config.tools.note {
            None => builder.system_prompt(self.prompt.as_str()),
            Some(note) => {
                let prompt = self.prompt.clone();
                let tool = NoteTool::new().max_notes(note.max_notes).max_chars(note.max_chars);
                let builder = builder.state::<Notes>().tool(tool.tool());
                builder.system_prompt_of(move |notes: Notes| notes.shown_in(&prompt))
            }
        };
        let agent = self.finish(builder).map_err(|error| self.invalid(&error))?;
        let plan = plan::options(config, &agent, &options.clock);
        Ok(BuiltAgent { agent, plan })
    }

    fn finish(&self, builder: AgentBuilder) -> Result<AnyAgent> {
        let (Some(schema), Some(config)) = (&self.output, &self.config.output) else {
            return Ok(builder.build()?.erased());
        };
        let builder = builder.output_schema(schema.clone()).strict_output(config.strict);
        let builder = if config.native { builder.native_output() } else { builder };
        Ok(builder.build()?.erased())
    }

    /// Adds the name of the file to an error from core.
    fn invalid(&self, error: &Error) -> Error {
        let file = self.path.to_string_lossy();
        let file = one_line(&file);
        Error::new(
            ErrorCode::AgentInvalid,
            format!("{file}: {}", shortened(error.message(), MAX_CHARS)),
        )
        .with_context(FILE, &file)
    }
}

impl SettingsConfig {
    fn apply(&self, llm: &mut LlmConfig) {
        llm.max_output_tokens = self.max_output_tokens;
        llm.temperature = self.temperature;
        llm.top_p = self.top_p;
        llm.top_k = self.top_k;
        llm.presence_penalty = self.presence_penalty;
        llm.frequency_penalty = self.frequency_penalty;
        llm.stop_sequences.clone_from(&self.stop_sequences);
        llm.seed = self.seed;
        llm.max_retries = self.max_retries;
    }
}
