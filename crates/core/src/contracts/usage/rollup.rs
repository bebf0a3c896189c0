//! Aggregated usage.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::by_name::UsageByName;
use super::entry::{UsageEntry, UsageKind};
use super::tokens::Usage;
use crate::budget::Cost;
use crate::id::SessionId;

/// The name under which calls of an unknown model are counted. Most of them failed.
const UNKNOWN: &str = "unknown";

/// Aggregated usage of one session, or of a session tree. Its size depends on the number of
/// distinct models, tools, agents and sources, not on the number of calls.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UsageRollup {
    /// The token usage.
    #[serde(skip_serializing_if = "Usage::is_zero")]
    pub tokens: Usage,
    /// The number of model calls, including failed ones.
    pub steps: u64,
    /// The number of tool calls that ran.
    pub tool_calls: u64,
    /// The cost of the model calls, as far as prices are known.
    #[serde(skip_serializing_if = "Cost::is_zero")]
    pub cost: Cost,
    /// The usage by model, as named by the provider.
    #[serde(skip_serializing_if = "UsageByName::is_empty")]
    pub models: UsageByName<ModelUsage>,
    /// The usage by tool, including client tools.
    #[serde(skip_serializing_if = "UsageByName::is_empty")]
    pub tools: UsageByName<ToolUsage>,
    /// The usage by sub-agent.
    #[serde(skip_serializing_if = "UsageByName::is_empty")]
    pub sub_agents: UsageByName<SubAgentUsage>,
    /// The amounts recorded by tools and hooks, by source type and name.
    #[serde(skip_serializing_if = "UsageByName::is_empty")]
    pub custom: UsageByName<UsageByName<f64>>,
    /// The number of those records, by source type and name. Older versions did not record it.
    #[serde(skip_serializing_if = "UsageByName::is_empty")]
    pub custom_records: UsageByName<UsageByName<CustomRecords>>,
}

/// The calls of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelUsage {
    /// The number of calls.
    pub calls: u64,
    /// The number of failed calls.
    pub failed: u64,
    /// The token usage.
    pub tokens: Usage,
    /// The cost of the calls.
    #[serde(skip_serializing_if = "Cost::is_zero")]
    pub cost: Cost,
    /// The total duration of the calls, in milliseconds. Older versions did not record it.
    pub took_ms: u64,
}

/// The calls of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolUsage {
    /// The number of calls.
    pub calls: u64,
    /// The number of failed calls.
    pub failed: u64,
    /// The total duration of the calls, in milliseconds.
    pub took_ms: u64,
}

/// The calls of one sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SubAgentUsage {
    /// The number of calls.
    pub calls: u64,
    /// The number of failed calls.
    pub failed: u64,
    /// The token usage, including that of the sub-agent's own children.
    pub tokens: Usage,
}

/// The records of one custom source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CustomRecords {
    /// The number of records.
    pub calls: u64,
    /// The number of records whose operation failed.
    pub failed: u64,
}

impl UsageRollup {
    /// Aggregates the usage of a session itself: a sub-agent counts as a call, and its tokens are
    /// listed separately.
    #[must_use]
    pub fn of<'a>(entries: impl IntoIterator<Item = &'a UsageEntry>) -> Self {
        Self::collect(entries, |_| {})
    }

    /// Aggregates the usage of a session and of all sessions below it.
    #[must_use]
    pub fn of_tree<'a>(entries: impl IntoIterator<Item = &'a UsageEntry>) -> Self {
        let mut below = Self::default();
        let mut rollup = Self::collect(entries, |used| below += used);
        rollup += &below;
        rollup
    }

    fn collect<'a>(
        entries: impl IntoIterator<Item = &'a UsageEntry>,
        child: impl FnMut(&Self),
    ) -> Self {
        let mut rollup = Self::default();
        // A child session that is called again reports its whole usage again.
        let mut children = BTreeMap::<&SessionId, &Self>::new();
        for entry in entries {
            let mut before = None;
            if let UsageKind::SubAgent { session, used, .. } = &entry.kind {
                before = children.get(session).copied();
                if before.is_none_or(|before| !used.is_before(before)) {
                    children.insert(session, used);
                }
            }
            rollup.add(&entry.kind, before);
        }
        children.into_values().for_each(child);
        rollup
    }

    /// Returns `true` if this is an earlier report about the same session. Reports about a
    /// companion's turns can arrive in another order than the turns ended, and totals of a session
    /// never decrease.
    pub(super) fn is_before(&self, later: &Self) -> bool {
        let order = |usage: &Self| (usage.steps, usage.tool_calls, usage.tokens.total());
        order(self) < order(later)
    }

    /// Adds usage. `before` is the previous report about the same child session, if any.
    pub(super) fn add(&mut self, kind: &UsageKind, before: Option<&Self>) {
        match kind {
            UsageKind::Tokens { model, tokens, cost, success, took_ms } => {
                let cost = cost.unwrap_or_default();
                self.steps += 1;
                self.tokens += *tokens;
                self.cost += cost;
                let model = model.clone().unwrap_or_else(|| UNKNOWN.into());
                let (failed, took_ms) = (u64::from(!*success), *took_ms);
                *self.models.get_or_default(model) +=
                    ModelUsage { calls: 1, failed, tokens: *tokens, cost, took_ms };
            }
            UsageKind::Tool { tool, success, took_ms, attempts, .. } => {
                self.tool_calls += u64::from(*attempts > 0);
                let (failed, took_ms) = (u64::from(!*success), *took_ms);
                *self.tools.get_or_default(Arc::clone(tool)) +=
                    ToolUsage { calls: 1, failed, took_ms };
            }
            UsageKind::SubAgent { agent, success, used, .. } => {
                let before = before.map(|before| before.tokens).unwrap_or_default();
                let (failed, tokens) = (u64::from(!*success), used.tokens.since(&before));
                *self.sub_agents.get_or_default(Arc::clone(agent)) +=
                    SubAgentUsage { calls: 1, failed, tokens };
            }
            UsageKind::Custom { source_type, source_name, amount, success, .. } => {
                let of_type = self.custom.get_or_default(Arc::clone(source_type));
                add_amount(of_type.get_or_default(Arc::clone(source_name)), *amount);
                let of_type = self.custom_records.get_or_default(Arc::clone(source_type));
                *of_type.get_or_default(Arc::clone(source_name)) +=
                    CustomRecords { calls: 1, failed: u64::from(!*success) };
            }
        }
    }
}

impl AddAssign<&Self> for UsageRollup {
    fn add_assign(&mut self, other: &Self) {
        self.add_up_to(other, usize::MAX);
    }
}

/// Adds an amount. The sum of finite amounts stays finite, because JSON has no infinite numbers.
pub(super) fn add_amount(to: &mut f64, amount: f64) {
    *to = (*to + amount).clamp(f64::MIN, f64::MAX);
}

impl AddAssign for ModelUsage {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.failed = self.failed.saturating_add(other.failed);
        self.tokens += other.tokens;
        self.cost += other.cost;
        self.took_ms = self.took_ms.saturating_add(other.took_ms);
    }
}

impl AddAssign for ToolUsage {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.failed = self.failed.saturating_add(other.failed);
        self.took_ms = self.took_ms.saturating_add(other.took_ms);
    }
}

impl AddAssign for SubAgentUsage {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.failed = self.failed.saturating_add(other.failed);
        self.tokens += other.tokens;
    }
}

impl AddAssign for CustomRecords {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.failed = self.failed.saturating_add(other.failed);
    }
}
