//! Budgets: limits on the usage of a session and of all sessions below it.

mod cost;
mod price;
mod spent;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use cost::Cost;
pub use price::{Price, PriceTable};
pub use spent::{BudgetLimit, BudgetUsage, Exceeded};

/// Limits on the usage of a session over all of its turns, runs and children. Limits that are not
/// set do not apply.
///
/// They are checked before each model call and before tools start. A session that has reached a
/// limit fails with [`BudgetExceeded`](crate::error::ErrorCode::BudgetExceeded), and continues if
/// it is resumed with a larger budget. A model call in progress is not cancelled, so each running
/// agent may exceed the budget by one call.
///
/// # Examples
///
/// ```
/// use helix_agents_core::budget::{Budget, Cost};
///
/// let budget = Budget::new().steps(20).cost(Cost::usd(0.5));
/// assert_eq!(budget.steps, Some(20));
/// assert_eq!(budget.tokens, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Budget {
    /// The maximum number of model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// The maximum number of input and output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The maximum number of tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// The maximum time during which runs are in progress, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_time_ms: Option<u64>,
    /// The maximum cost of the model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

impl Budget {
    /// Creates a budget without limits.
    #[must_use]
    pub const fn new() -> Self {
        Self { steps: None, tokens: None, tool_calls: None, wall_time_ms: None, cost: None }
    }

    /// Sets the maximum number of model calls, including failed ones.
    #[must_use]
    pub const fn steps(mut self, steps: u64) -> Self {
        self.steps = Some(steps);
        self
    }

    /// Sets the maximum number of tokens, input and output together.
    #[must_use]
    pub const fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Sets the maximum number of tool calls. Further calls are not run. If the model requests
    /// calls beyond the limit, the run fails after that step.
    #[must_use]
    pub const fn tool_calls(mut self, calls: u64) -> Self {
        self.tool_calls = Some(calls);
        self
    }

    /// Sets the maximum time during which runs are in progress, by the store's clock. Time in which
    /// a session is suspended does not count.
    #[must_use]
    pub fn wall_time(mut self, time: Duration) -> Self {
        self.wall_time_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Sets the maximum cost of model calls. Every model then needs a price, see [`PriceTable`].
    #[must_use]
    pub const fn cost(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Returns `true` if no limit is set.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::new()
    }

    /// Returns these limits, with unset ones taken from `other`.
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

    /// Returns the smaller value of each limit.
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

    /// Returns one of `parts` equal shares of the remaining budget. Time is not divided, because it
    /// passes for all shares at once.
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

    /// Returns the limit that forbids a further model call, if one is reached. The limit on tool
    /// calls is not checked: a model may reply without calling tools.
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

    /// Returns the limit on tool calls, if it is reached.
    #[must_use]
    pub fn tool_calls_exceeded(&self, spent: &BudgetUsage) -> Option<Exceeded> {
        let allowed = self.tool_calls.filter(|allowed| spent.tool_calls >= *allowed)?;
        Some(Exceeded { limit: BudgetLimit::ToolCalls, used: spent.tool_calls, allowed })
    }

    /// Returns the problem of the budget as part of a definition, if any.
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
