//! Usage as rows, one for each source.

use std::sync::Arc;

use serde::Serialize;

use super::rollup::{CustomRecords, UsageRollup};
use super::tokens::Usage;
use crate::budget::Cost;

/// The kind of a usage source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UsageSource {
    /// Calls of a model.
    Tokens,
    /// Calls of a tool.
    Tool,
    /// Calls of a sub-agent.
    SubAgent,
    /// Amounts that tools and hooks recorded themselves.
    Custom,
}

impl UsageSource {
    /// Returns the name that is used in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Tool => "tool",
            Self::SubAgent => "sub_agent",
            Self::Custom => "custom",
        }
    }
}

/// The usage of one source. Values that do not apply to the kind of source are 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UsageGroup {
    /// The kind of source.
    pub source: UsageSource,
    /// The source type: the recorded one of a custom amount; the name of the kind for all others.
    pub source_type: Arc<str>,
    /// The name of the model, tool or sub-agent, or the source name of a custom amount.
    pub source_name: Arc<str>,
    /// The number of calls, or of records of a custom amount.
    pub calls: u64,
    /// The number of failed calls.
    pub failed: u64,
    /// The tokens of a model, or of a sub-agent and all sessions below it as recorded by its
    /// callers.
    pub tokens: Usage,
    /// The cost of a model's calls, as far as prices are known.
    pub cost: Cost,
    /// The total duration of the calls of a model or tool, in milliseconds.
    pub took_ms: u64,
    /// The sum of custom amounts.
    pub amount: f64,
}

impl UsageGroup {
    fn of(source: UsageSource, name: &Arc<str>) -> Self {
        Self {
            source,
            source_type: source.as_str().into(),
            source_name: Arc::clone(name),
            calls: 0,
            failed: 0,
            tokens: Usage::default(),
            cost: Cost::default(),
            took_ms: 0,
            amount: 0.0,
        }
    }
}

impl UsageRollup {
    /// Returns one row for each source: models, tools, sub-agents and custom amounts, each sorted
    /// by name.
    #[must_use]
    pub fn groups(&self) -> Vec<UsageGroup> {
        let models = self.models.iter().map(|(name, used)| UsageGroup {
            calls: used.calls,
            failed: used.failed,
            tokens: used.tokens,
            cost: used.cost,
            took_ms: used.took_ms,
            ..UsageGroup::of(UsageSource::Tokens, name)
        });
        let tools = self.tools.iter().map(|(name, used)| UsageGroup {
            calls: used.calls,
            failed: used.failed,
            took_ms: used.took_ms,
            ..UsageGroup::of(UsageSource::Tool, name)
        });
        let sub_agents = self.sub_agents.iter().map(|(name, used)| UsageGroup {
            calls: used.calls,
            failed: used.failed,
            tokens: used.tokens,
            ..UsageGroup::of(UsageSource::SubAgent, name)
        });
        let custom = self.custom.iter().flat_map(|(source_type, names)| {
            names.iter().map(|(name, amount)| {
                let CustomRecords { calls, failed } = self.records_of(source_type, name);
                let source_type = Arc::clone(source_type);
                let (source, amount) = (UsageSource::Custom, *amount);
                UsageGroup { source_type, calls, failed, amount, ..UsageGroup::of(source, name) }
            })
        });
        models.chain(tools).chain(sub_agents).chain(custom).collect()
    }

    fn records_of(&self, source_type: &str, name: &str) -> CustomRecords {
        let records = self.custom_records.get(source_type).and_then(|names| names.get(name));
        records.copied().unwrap_or_default()
    }
}
