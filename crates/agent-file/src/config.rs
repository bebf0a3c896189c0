//! The structure of agent files. The JSON Schema is generated from these types, and their doc
//! comments become its descriptions.

mod tools;

use std::time::Duration;

use helix_agents_core::agent;
use helix_agents_core::budget::Budget;
use helix_agents_planner as planner;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

pub(crate) use tools::{
    CalculatorConfig, FilesConfig, HttpConfig, NoteConfig, ShellConfig, TimeConfig,
};

/// An agent for `helix run`: its prompt, model, limits and tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Helix agent file")]
#[schemars(extend("oneOf" = [{ "required": ["prompt"] }, { "required": ["prompt_file"] }]))]
pub(crate) struct AgentConfig {
    /// The agent's name. Sessions record it, and only the agent with this name can resume them.
    #[schemars(length(max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"), example = &"reader", example = &"tax-helper_2")]
    pub(crate) name: String,
    /// The purpose of the agent, as a sentence for human readers.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub(crate) description: String,
    /// The system prompt.
    #[schemars(length(min = 1))]
    pub(crate) prompt: Option<String>,
    /// A file with the system prompt, in the agent file's folder or below it.
    #[schemars(length(min = 1))]
    pub(crate) prompt_file: Option<String>,
    /// The model, as `provider:model`. Default: the model that is configured on the machine.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) model: Option<String>,
    /// Limits of a turn and of the whole session.
    #[serde(default)]
    pub(crate) limits: LimitsConfig,
    /// Settings of the model calls. A provider rejects settings that it does not support.
    #[serde(default)]
    pub(crate) settings: SettingsConfig,
    /// Plan-execute: the model plans tool calls in rounds before it answers. Without this table the
    /// model calls tools step by step.
    pub(crate) planner: Option<PlannerConfig>,
    /// The structured output of the agent. Without this table the agent answers in plain text.
    pub(crate) output: Option<OutputConfig>,
    /// The tools of the agent, each in its own table.
    #[serde(default)]
    pub(crate) tools: ToolsConfig,
}

/// Limits of a turn and of the whole session.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsConfig {
    /// The maximum number of steps of a turn. A step is one model call and the tool calls that it makes.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) max_steps: u32,
    /// The number of times that the model may correct an answer that does not match the output schema.
    #[schemars(range(min = 0, max = 20))]
    pub(crate) completion_retries: u32,
    /// The maximum number of tool calls of one step that run concurrently.
    #[schemars(range(min = 1, max = 64))]
    pub(crate) tool_concurrency: usize,
    /// The maximum duration of a tool call.
    pub(crate) tool_timeout: Period,
    /// The maximum size of a tool result in bytes.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub(crate) max_result_bytes: usize,
    /// The token budget of the session, input and output together.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<u64>,
    /// The maximum number of tool calls of the session.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_calls: Option<u64>,
    /// The maximum total duration of the session's runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wall_time: Option<Period>,
}

impl LimitsConfig {
    pub(crate) fn budget(&self) -> Budget {
        let mut budget = Budget::new();
        (budget.tokens, budget.tool_calls) = (self.tokens, self.tool_calls);
        match self.wall_time {
            Some(time) => budget.wall_time(time.0),
            None => budget,
        }
    }
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let limits = agent::Limits::default();
        Self {
            max_steps: limits.max_steps,
            completion_retries: limits.completion_retries,
            tool_concurrency: limits.tool_concurrency,
            tool_timeout: Period(limits.tool_timeout),
            max_result_bytes: limits.max_result_bytes,
            tokens: None,
            tool_calls: None,
            wall_time: None,
        }
    }
}

/// Settings of the model calls. A provider rejects settings that it does not support.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SettingsConfig {
    /// The maximum number of tokens of a reply.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) max_output_tokens: Option<u32>,
    /// The sampling temperature, 0 to 2.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub(crate) temperature: Option<f64>,
    /// The threshold of nucleus sampling, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(crate) top_p: Option<f64>,
    /// Top-k sampling: only the k most likely tokens are considered.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) top_k: Option<u32>,
    /// The penalty on tokens that already occurred, -2 to 2.
    #[schemars(range(min = -2.0, max = 2.0))]
    pub(crate) presence_penalty: Option<f64>,
    /// The penalty on tokens in proportion to how often they occurred, -2 to 2.
    #[schemars(range(min = -2.0, max = 2.0))]
    pub(crate) frequency_penalty: Option<f64>,
    /// Strings that end a reply.
    #[schemars(length(max = 16), inner(length(min = 1, max = 200)))]
    pub(crate) stop_sequences: Vec<String>,
    /// The seed for repeatable sampling, if the provider supports it.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub(crate) seed: Option<u64>,
    /// The number of times that a failed model call is retried. Default: 3.
    #[schemars(range(min = 0, max = 20))]
    pub(crate) max_retries: Option<u32>,
}

/// Plan-execute: the model plans tool calls in rounds before it answers.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PlannerConfig {
    /// The maximum number of rounds of tool calls. Each round takes a step, and so does the answer.
    #[schemars(range(min = 1, max = 999))]
    pub(crate) max_rounds: u32,
    /// How long the model may plan, measured from the first plan of the turn. Then the agent answers
    /// with the results so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<Period>,
    /// The maximum size in bytes of a tool result as shown to the model for plans and the answer.
    #[schemars(range(min = 1, max = 262_144))]
    pub(crate) max_result_bytes: usize,
    /// The model that makes the plans, as `provider:model`. Default: the agent's model.
    #[schemars(length(min = 1, max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
}

impl Default for PlannerConfig {
    fn default() -> Self {
        Self {
            max_rounds: planner::DEFAULT_MAX_ROUNDS,
            timeout: None,
            max_result_bytes: planner::DEFAULT_MAX_RESULT_BYTES,
            model: None,
        }
    }
}

/// The structured output of the agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["schema"] }, { "required": ["schema_file"] }]))]
pub(crate) struct OutputConfig {
    /// A JSON Schema, written as TOML.
    pub(crate) schema: Option<Map<String, Value>>,
    /// A file with a JSON Schema, in the agent file's folder or below it.
    #[schemars(length(min = 1))]
    pub(crate) schema_file: Option<String>,
    /// Request the answer in the provider's native response format instead of a tool call.
    #[serde(default)]
    pub(crate) native: bool,
    /// Ask the provider to enforce the schema. This is a hint.
    #[serde(default)]
    pub(crate) strict: bool,
}

/// The tools of the agent, each in its own table.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolsConfig {
    /// `list_files` and `read_file`, and `write_file` if `write` is set: access to files below one folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<FilesConfig>,
    /// `http_get`: HTTP GET requests to the listed hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) http: Option<HttpConfig>,
    /// `calculate`: arithmetic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calculator: Option<CalculatorConfig>,
    /// `current_time`: the date and time in any time zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<TimeConfig>,
    /// `note`: notes that stay in the system prompt for the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<NoteConfig>,
    /// `shell`: the listed commands. A user has to approve each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shell: Option<ShellConfig>,
}

impl ToolsConfig {
    pub(crate) fn is_empty(&self) -> bool {
        let Self { files, http, calculator, time, note, shell } = self;
        let simple = calculator.is_none() && time.is_none() && note.is_none();
        simple && files.is_none() && http.is_none() && shell.is_none()
    }
}

/// A duration in human notation: `500ms`, `30s`, `2m`, `1h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String", inline)]
#[schemars(extend("pattern" = "^[1-9][0-9]{0,5}(ms|s|m|h)$", "examples" = ["500ms", "30s", "2m"]))]
pub(crate) struct Period(pub(crate) Duration);

impl Period {
    fn parse(text: &str) -> Option<Self> {
        let unit = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at_checked(unit)?;
        let number: u64 = number.parse().ok().filter(|number| (1..=999_999).contains(number))?;
        let millis = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60 * 1000,
            "h" => 60 * 60 * 1000,
            _ => return None,
        };
        Some(Self(Duration::from_millis(number * millis)))
    }
}

impl<'de> Deserialize<'de> for Period {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let problem = || serde::de::Error::custom("a duration looks like `500ms`, `30s` or `2m`");
        Self::parse(&text).ok_or_else(problem)
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(1000) {
            serializer.collect_str(&format_args!("{}s", millis / 1000))
        } else {
            serializer.collect_str(&format_args!("{millis}ms"))
        }
    }
}
