//! Usage as rows: one for each source.

use std::sync::Arc;

use serde::Serialize;

use super::rollup::{CustomRecords, UsageRollup};
use super::tokens::Usage;
use crate::budget::Cost;

/// The kinds of things that are used.
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
    /// The name in reports.
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

/// The usage of one source. What does not exist for a kind is 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UsageGroup {
    /// The kind of source.
    pub source: UsageSource,
    /// The source type: that of a custom amount, as it was recorded; the kind's name for all others.
    pub source_type: Arc<str>,
    /// The model, tool or sub-agent, or the source name of a custom amount.
    pub source_name: Arc<str>,
    /// How many calls, or how often an amount was recorded.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
    /// Tokens of a model, or those of a sub-agent and all below it as its callers recorded them.
    pub tokens: Usage,
    /// What a model's calls cost, as far as they have prices.
    pub cost: Cost,
    /// Milliseconds that calls of a model or tool took.
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
    /// One row for each source: models, tools, sub-agents and custom amounts, each in the order of
    /// their names.
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
