//! What may stand in an agent file. The JSON Schema is made of these types, and their comments are
//! what people read in it.

use std::time::Duration;

use helix_agents::agent;
use helix_agents::budget::Budget;
use helix_agents::planner;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::builtin::{CalculatorForm, FilesForm, HttpForm, NoteForm, ShellForm, TimeForm};

/// An agent for `helix run`: what it is told, which model plays it, and what it may do.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Helix agent file")]
#[schemars(extend("oneOf" = [{ "required": ["prompt"] }, { "required": ["prompt_file"] }]))]
pub(crate) struct Form {
    /// The agent's name. A session belongs to the agent of that name.
    #[schemars(length(max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"), example = &"reader", example = &"tax-helper_2")]
    pub(crate) name: String,
    /// What it is for, in a sentence for people.
    #[serde(default)]
    #[schemars(length(max = 1000))]
    pub(crate) description: String,
    /// The system prompt.
    #[schemars(length(min = 1))]
    pub(crate) prompt: Option<String>,
    /// A file with the system prompt, in the agent file's folder or below it.
    #[schemars(length(min = 1))]
    pub(crate) prompt_file: Option<String>,
    /// The model, as `provider:model`. Without it the one that is configured on the machine.
    #[schemars(length(min = 1, max = 200))]
    pub(crate) model: Option<String>,
    /// What a turn may use up, and the session as a whole.
    #[serde(default)]
    pub(crate) limits: LimitsForm,
    /// Settings of the model calls. What a provider does not know it refuses.
    #[serde(default)]
    pub(crate) settings: SettingsForm,
    /// Plans of tool calls, round by round, before the answer. Without it the model calls the tools
    /// as it goes along.
    pub(crate) planner: Option<PlannerForm>,
    /// The form of the answer. Without it the agent answers in plain text.
    pub(crate) output: Option<OutputForm>,
    /// The tools that the agent has, each in a table of its own.
    #[serde(default)]
    pub(crate) tools: ToolsForm,
}

/// What a turn may use up.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LimitsForm {
    /// The most steps, each a model call with the tools that it calls.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) max_steps: u32,
    /// How often the model is told that its answer does not have the form of the output.
    #[schemars(range(min = 0, max = 20))]
    pub(crate) completion_retries: u32,
    /// How many tools of one step run at once.
    #[schemars(range(min = 1, max = 64))]
    pub(crate) tool_concurrency: usize,
    /// How long a tool may take.
    pub(crate) tool_timeout: Period,
    /// The most bytes of one tool result.
    #[schemars(range(min = 1, max = 16_777_216))]
    pub(crate) max_result_bytes: usize,
    /// The most tokens of the session, input and output together.
    #[schemars(range(min = 1, max = 9_007_199_254_740_991_u64))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<u64>,
    /// The most tool calls of the session.
    #[schemars(range(min = 1, max = 1_000_000))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_calls: Option<u64>,
    /// How long the session's runs may be under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) wall_time: Option<Period>,
}

impl LimitsForm {
    pub(crate) fn budget(&self) -> Budget {
        let budget = Budget { tokens: self.tokens, tool_calls: self.tool_calls, ..Budget::new() };
        match self.wall_time {
            Some(time) => budget.wall_time(time.0),
            None => budget,
        }
    }
}

impl Default for LimitsForm {
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

/// Settings of the model calls. What a provider does not know it refuses.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SettingsForm {
    /// The most tokens of a reply.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) max_output_tokens: Option<u32>,
    /// How random replies are, 0 to 2.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub(crate) temperature: Option<f64>,
    /// Nucleus sampling, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub(crate) top_p: Option<f64>,
    /// Sampling from the k likeliest tokens.
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) top_k: Option<u32>,
    /// Penalty on tokens that occurred, -2 to 2.
    #[schemars(range(min = -2.0, max = 2.0))]
    pub(crate) presence_penalty: Option<f64>,
    /// Penalty on tokens by how often they occurred, -2 to 2.
    #[schemars(range(min = -2.0, max = 2.0))]
    pub(crate) frequency_penalty: Option<f64>,
    /// Texts that end a reply.
    #[schemars(length(max = 16), inner(length(min = 1, max = 200)))]
    pub(crate) stop_sequences: Vec<String>,
    /// For repeatable sampling, where the provider has it.
    #[schemars(range(min = 0, max = 9_007_199_254_740_991_u64))]
    pub(crate) seed: Option<u64>,
    /// How often a failed model call is tried again. Default 3.
    #[schemars(range(min = 0, max = 20))]
    pub(crate) max_retries: Option<u32>,
}

/// Plans of tool calls, round by round, before the answer.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PlannerForm {
    /// How many rounds of tool calls may be carried out. Each takes a step, and so does the answer.
    #[schemars(range(min = 1, max = 999))]
    pub(crate) max_rounds: u32,
    /// How long plans may be made, from the turn's first one; then the agent answers with what there
    /// is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<Period>,
    /// The most bytes of one tool result that plans and answer are shown.
    #[schemars(range(min = 1, max = 262_144))]
    pub(crate) max_result_bytes: usize,
    /// The model that makes the plans, as `provider:model`. Without it the agent's.
    #[schemars(length(min = 1, max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
}

impl Default for PlannerForm {
    fn default() -> Self {
        Self {
            max_rounds: planner::DEFAULT_MAX_ROUNDS,
            timeout: None,
            max_result_bytes: planner::DEFAULT_MAX_RESULT_BYTES,
            model: None,
        }
    }
}

/// The form of the answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["schema"] }, { "required": ["schema_file"] }]))]
pub(crate) struct OutputForm {
    /// A JSON Schema, written as TOML.
    pub(crate) schema: Option<Map<String, Value>>,
    /// A file with a JSON Schema, in the agent file's folder or below it.
    #[schemars(length(min = 1))]
    pub(crate) schema_file: Option<String>,
    /// Ask for the answer by the provider's own response format instead of a tool call.
    #[serde(default)]
    pub(crate) native: bool,
    /// Ask the provider to hold the model to the schema. A hint.
    #[serde(default)]
    pub(crate) strict: bool,
}

/// The tools that the agent has, each in a table of its own.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ToolsForm {
    /// `list_files` and `read_file`, and `write_file` if that is allowed: files below one folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<FilesForm>,
    /// `http_get`: pages of the hosts that are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) http: Option<HttpForm>,
    /// `calculate`: arithmetic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calculator: Option<CalculatorForm>,
    /// `current_time`: date and time in any time zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<TimeForm>,
    /// `note`: notes that stay in front of the model for the whole session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<NoteForm>,
    /// `shell`: the commands that are listed, each of which a person has to approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shell: Option<ShellForm>,
}

impl ToolsForm {
    pub(super) fn is_empty(&self) -> bool {
        let Self { files, http, calculator, time, note, shell } = self;
        let simple = calculator.is_none() && time.is_none() && note.is_none();
        simple && files.is_none() && http.is_none() && shell.is_none()
    }
}

/// A length of time as people write it: `500ms`, `30s`, `2m`, `1h`.
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
        let problem = || serde::de::Error::custom("a time looks like `500ms`, `30s` or `2m`");
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
