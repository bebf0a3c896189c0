//! What a session may use up, the sessions below it included.

mod cost;
mod price;
mod spent;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use cost::Cost;
pub use price::{Price, PriceTable};
pub use spent::{BudgetLimit, BudgetUsage, Exceeded};

/// Limits on what a session may use up, all of its turns, runs and children included. What is not
/// named is not limited.
///
/// They are looked at before each model call and before tools start. A session that has reached one
/// fails with [`BudgetExceeded`](crate::error::ErrorCode::BudgetExceeded), and goes on when it is
/// resumed with a larger budget. A model call under way is not broken off, so each running agent
/// may go over by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Input and output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Milliseconds during which runs are under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time_ms: Option<u64>,
    /// What the model calls may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Budget {
    /// No limit at all.
    #[must_use]
    pub const fn new() -> Self {
        Self { steps: None, tokens: None, tool_calls: None, wall_time_ms: None, cost: None }
    }

    /// The most model calls, those that fail included.
    #[must_use]
    pub const fn steps(mut self, steps: u64) -> Self {
        self.steps = Some(steps);
        self
    }

    /// The most tokens, input and output together.
    #[must_use]
    pub const fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// The most tool calls. A call beyond it is not run.
    #[must_use]
    pub const fn tool_calls(mut self, calls: u64) -> Self {
        self.tool_calls = Some(calls);
        self
    }

    /// The longest that runs may be under way, by the store's clock. Waiting for people does not
    /// count.
    #[must_use]
    pub fn wall_time(mut self, time: Duration) -> Self {
        self.wall_time_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// The most that model calls may cost. Every model needs a price then, see [`PriceTable`].
    #[must_use]
    pub const fn cost(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Whether nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::new()
    }

    /// These limits, and of the other's those that these do not name.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            steps: self.steps.or(other.steps),
            tokens: self.tokens.or(other.tokens),
            tool_calls: self.tool_calls.or(other.tool_calls),
            wall_time_ms: self.wall_time_ms.or(other.wall_time_ms),
            cost: self.cost.or(other.cost),
        }
    }

    /// The smaller of each limit.
    #[must_use]
    pub fn smaller(self, other: Self) -> Self {
        Self {
            steps: least(self.steps, other.steps),
            tokens: least(self.tokens, other.tokens),
            tool_calls: least(self.tool_calls, other.tool_calls),
            wall_time_ms: least(self.wall_time_ms, other.wall_time_ms),
            cost: least(self.cost, other.cost),
        }
    }

    /// What one of so many equal parts of the rest is. Time is not divided: it passes for all at
    /// once.
    #[must_use]
    pub fn share(self, spent: &BudgetUsage, parts: u64) -> Self {
        let parts = parts.max(1);
        let part = |limit: u64, used: u64| limit.saturating_sub(used) / parts;
        Self {
            steps: self.steps.map(|limit| part(limit, spent.steps)),
            tokens: self.tokens.map(|limit| part(limit, spent.tokens)),
            tool_calls: self.tool_calls.map(|limit| part(limit, spent.tool_calls)),
            wall_time_ms: self.wall_time_ms.map(|limit| limit.saturating_sub(spent.wall_time_ms)),
            cost: self.cost.map(|limit| Cost(part(limit.0, spent.cost.0))),
        }
    }

    /// The limit after which no model call may follow, if one is reached. Tool calls are not among
    /// them: a model may answer without any.
    #[must_use]
    pub fn exceeded(&self, spent: &BudgetUsage) -> Option<Exceeded> {
        let reached = |limit, used: u64, allowed: Option<u64>| {
            allowed.filter(|allowed| used >= *allowed).map(|allowed| Exceeded {
                limit,
                used,
                allowed,
            })
        };
        reached(BudgetLimit::Steps, spent.steps, self.steps)
            .or_else(|| reached(BudgetLimit::Tokens, spent.tokens, self.tokens))
            .or_else(|| reached(BudgetLimit::WallTime, spent.wall_time_ms, self.wall_time_ms))
            .or_else(|| reached(BudgetLimit::Cost, spent.cost.0, self.cost.map(|cost| cost.0)))
    }

    /// The limit of tool calls, if it is reached.
    #[must_use]
    pub fn tool_calls_exceeded(&self, spent: &BudgetUsage) -> Option<Exceeded> {
        let allowed = self.tool_calls.filter(|allowed| spent.tool_calls >= *allowed)?;
        Some(Exceeded { limit: BudgetLimit::ToolCalls, used: spent.tool_calls, allowed })
    }

    /// What is wrong with it as part of a definition.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let counts = [self.steps, self.tokens, self.tool_calls, self.wall_time_ms];
        let zero = counts.contains(&Some(0)) || self.cost == Some(Cost(0));
        zero.then_some("each limit of a `budget` must be more than zero")
    }
}

fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
