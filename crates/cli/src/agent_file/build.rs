//! Builds the agent that an agent file describes.

use std::path::Path;

use helix_agents::agent::{Agent, AgentBuilder, AnyAgent};
use helix_agents::error::{Error, ErrorCode, Result};
use helix_agents::llm::LlmConfig;

use super::config::SettingsConfig;
use super::document::AgentFile;
use super::source_map::FILE;
use crate::builtin::{self, Notes};
use crate::text::{one_line, shortened};

/// The maximum length of an error message from core that is shown.
const MAX_CHARS: usize = 2000;

impl AgentFile {
    /// Builds the agent with the model `model`. `files` overrides the folder that the file tools access.
    ///
    /// # Errors
    /// [`ErrorCode::AgentInvalid`], with every problem found.
    pub(crate) fn agent(&self, model: &str, files: Option<&Path>) -> Result<AnyAgent> {
        let config = &self.config;
        let mut builder = Agent::builder(&config.name)
            .description(&config.description)
            .model(model)
            .llm(|llm| config.settings.apply(llm))
            .max_steps(config.limits.max_steps)
            .completion_retries(config.limits.completion_retries)
            .tool_concurrency(config.limits.tool_concurrency)
            .tool_timeout(config.limits.tool_timeout.0)
            .max_result_bytes(config.limits.max_result_bytes)
            .budget(config.limits.budget());
        for tool in builtin::tools(&config.tools, self, files)? {
            builder = builder.tool(tool);
        }
        let agent = match config.tools.note {
            None => self.finish(builder.system_prompt(self.prompt.as_str())),
            Some(note) => {
                let prompt = self.prompt.clone();
                let builder = builder.state::<Notes>().tool(note.tool());
                self.finish(builder.system_prompt_of(move |notes: Notes| notes.shown_in(&prompt)))
            }
        };
        agent.map_err(|error| self.invalid(&error))
    }

    fn finish<S>(&self, builder: AgentBuilder<S>) -> Result<AnyAgent> {
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
