//! The capabilities of models, from a data file.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::LazyLock;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::llm::{Effort, LlmConfig, ThinkingAmount};
use serde::{Deserialize, Serialize};

mod builder;
mod media;
#[cfg(test)]
mod tests;

/// The capabilities of a model that matter to requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelCapabilities {
    /// Whether reasoning can be limited to a number of tokens.
    pub budget: bool,
    /// Whether requests may ask the model to choose by itself how much it reasons.
    pub adaptive: bool,
    /// Whether reasoning can be turned off.
    pub can_be_off: bool,
    /// The supported levels of effort.
    pub efforts: Vec<Effort>,
    /// Whether the model accepts settings such as `temperature`.
    pub sampling: Sampling,
    /// Whether a request can name the tool that the model must call.
    pub forced_tool: bool,
    /// Whether the model accepts earlier reasoning only if everything before it is unchanged.
    pub binds_reasoning: bool,
    /// Whether the model supports strict tools. Only requests to the Messages API depend on this.
    pub strict_tools: bool,
    /// Whether a request may contain both tools and an output schema.
    pub tools_with_schema: bool,
    /// Whether the model accepts images.
    pub images: bool,
    /// Whether the model accepts files other than images, such as documents.
    pub files: bool,
}

/// Whether a model accepts sampling settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sampling {
    /// Settings are always accepted.
    Yes,
    /// Only if reasoning is turned off.
    WithoutThinking,
    /// Settings are never accepted.
    #[default]
    No,
}

impl Default for ModelCapabilities {
    fn default() -> Self {
        Self {
            budget: false,
            adaptive: false,
            can_be_off: false,
            efforts: Vec::new(),
            sampling: Sampling::default(),
            forced_tool: true,
            binds_reasoning: false,
            strict_tools: false,
            tools_with_schema: true,
            images: true,
            files: true,
        }
    }
}

static MODELS: LazyLock<BTreeMap<String, ModelCapabilities>> = LazyLock::new(|| {
    // A test parses the file, so this cannot fail in a released version.
    toml::from_str(include_str!("capability/models.toml")).unwrap_or_default()
});

impl ModelCapabilities {
    /// Returns the capabilities of a model, or `None` if it is unknown. The name may have a prefix such as a vendor or
    /// a region, and a suffix such as a date.
    #[must_use]
    pub fn of(model: &str) -> Option<&'static Self> {
        // Each call asks for the capabilities of its model, so this does not compare it with all names.
        let known = starts(model)
            .flat_map(|rest| candidates(rest).filter(move |(name, _)| is_model(rest, name)));
        known.max_by_key(|(name, _)| name.len()).map(|(_, capabilities)| capabilities)
    }

    /// Rejects settings that the model does not support.
    ///
    /// # Errors
    /// Returns [`ErrorCode::ConfigInvalid`].
    pub(crate) fn check(&self, model: &str, config: &LlmConfig) -> Result<()> {
        let amount = config.thinking.map(|thinking| thinking.amount);
        let problem = match amount {
            Some(ThinkingAmount::Off) if !self.can_be_off => {
                Some("cannot turn its reasoning off".to_owned())
            }
            Some(ThinkingAmount::Budget(_)) if !self.budget => {
                Some("has no token budget for its reasoning".to_owned())
            }
            Some(ThinkingAmount::Effort(effort)) if !self.efforts.contains(&effort) => {
                Some(match self.efforts.as_slice() {
                    [] => "has no levels of effort".to_owned(),
                    efforts => {
                        let names: Vec<_> = efforts.iter().map(|effort| effort.as_str()).collect();
                        format!(
                            "does not support the effort `{}`, only {}",
                            effort.as_str(),
                            names.join(", ")
                        )
                    }
                })
            }
            _ => self.sampling_problem(amount, config),
        };
        match problem {
            Some(problem) => {
                Err(Error::new(ErrorCode::ConfigInvalid, format!("the model `{model}` {problem}")))
            }
            None => Ok(()),
        }
    }

    fn sampling_problem(
        &self,
        amount: Option<ThinkingAmount>,
        config: &LlmConfig,
    ) -> Option<String> {
        let settings = [
            ("temperature", config.temperature.is_some()),
            ("top_p", config.top_p.is_some()),
            ("top_k", config.top_k.is_some()),
        ];
        let (name, _) = settings.into_iter().find(|(_, is_set)| *is_set)?;
        match self.sampling {
            Sampling::Yes => None,
            Sampling::WithoutThinking if amount == Some(ThinkingAmount::Off) => None,
            Sampling::WithoutThinking => {
                Some(format!("supports `{name}` only if its reasoning is turned off"))
            }
            Sampling::No => Some(format!("does not support `{name}`")),
        }
    }
}

/// Returns the places at which the name of a known model may start: the start, and after each separator.
fn starts(model: &str) -> impl Iterator<Item = &str> {
    let later = model.match_indices(['/', '.', ':']).filter_map(|(at, _)| model.get(at + 1..));
    std::iter::once(model).chain(later)
}

/// Returns the known models whose name may be a prefix of `rest`: they start with the same byte and are not greater.
fn candidates(rest: &str) -> impl Iterator<Item = (&'static String, &'static ModelCapabilities)> {
    let first = rest.as_bytes().first().copied();
    let up_to_rest = (Bound::Unbounded, Bound::Included(rest));
    let names = MODELS.range::<str, _>(up_to_rest).rev();
    names.take_while(move |(name, _)| name.as_bytes().first().copied() == first)
}

/// Returns `true` if `rest` is the name of a known model, possibly with a suffix.
fn is_model(rest: &str, known: &str) -> bool {
    let Some(suffix) = rest.strip_prefix(known) else { return false };
    suffix.is_empty() || suffix.starts_with(['-', ':', '@']) && !is_version(suffix)
}

/// Returns `true` if a suffix continues a version number: `-5`, but not a date or a variant.
fn is_version(suffix: &str) -> bool {
    let Some(rest) = suffix.strip_prefix('-') else { return false };
    let digits = rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    (1..=2).contains(&digits)
}
