//! The usage that counts against a budget.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::Budget;
use super::cost::Cost;
use crate::error::{ErrorCode, ErrorRecord};
use crate::usage::UsageRollup;

/// The usage of a session that counts against its budget, including children that ended. It never
/// decreases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BudgetUsage {
    /// The number of model calls.
    pub steps: u64,
    /// The number of input and output tokens.
    pub tokens: u64,
    /// The number of tool calls.
    pub tool_calls: u64,
    /// The time during which the session's own runs were in progress, in milliseconds. The time of
    /// child sessions is not added.
    pub wall_time_ms: u64,
    /// The cost of the model calls.
    pub cost: Cost,
}

impl BudgetUsage {
    /// Converts the usage of a child into the amount charged to its parent.
    #[must_use]
    pub fn of_child(used: &UsageRollup) -> Self {
        Self {
            steps: used.steps,
            tokens: used.tokens.total(),
            tool_calls: used.tool_calls,
            wall_time_ms: 0,
            cost: used.cost,
        }
    }

    /// Returns the usage since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            steps: self.steps.saturating_sub(earlier.steps),
            tokens: self.tokens.saturating_sub(earlier.tokens),
            tool_calls: self.tool_calls.saturating_sub(earlier.tool_calls),
            wall_time_ms: self.wall_time_ms.saturating_sub(earlier.wall_time_ms),
            cost: Cost(self.cost.0.saturating_sub(earlier.cost.0)),
        }
    }

    /// Returns the maximum of each value: the later of two reports about the same session.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            steps: self.steps.max(other.steps),
            tokens: self.tokens.max(other.tokens),
            tool_calls: self.tool_calls.max(other.tool_calls),
            wall_time_ms: self.wall_time_ms.max(other.wall_time_ms),
            cost: Cost(self.cost.0.max(other.cost.0)),
        }
    }

    /// Returns the usage as if a child had used its whole allowance.
    #[must_use]
    pub fn all_of(allowance: &Budget) -> Self {
        Self {
            steps: allowance.steps.unwrap_or(0),
            tokens: allowance.tokens.unwrap_or(0),
            tool_calls: allowance.tool_calls.unwrap_or(0),
            wall_time_ms: 0,
            cost: allowance.cost.unwrap_or_default(),
        }
    }
}

impl AddAssign for BudgetUsage {
    fn add_assign(&mut self, other: Self) {
        self.steps = self.steps.saturating_add(other.steps);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.wall_time_ms = self.wall_time_ms.saturating_add(other.wall_time_ms);
        self.cost += other.cost;
    }
}

/// The kind of a budget limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetLimit {
    /// The limit on model calls.
    Steps,
    /// The limit on tokens.
    Tokens,
    /// The limit on tool calls.
    ToolCalls,
    /// The limit on the time during which runs are in progress.
    WallTime,
    /// The limit on the cost of model calls.
    Cost,
}

impl BudgetLimit {
    /// Returns the name that is used in errors and in the budget.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Tokens => "tokens",
            Self::ToolCalls => "tool_calls",
            Self::WallTime => "wall_time",
            Self::Cost => "cost",
        }
    }
}

/// A budget limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exceeded {
    /// The kind of the limit.
    pub limit: BudgetLimit,
    /// The usage: a count, milliseconds, or units of [`Cost`].
    pub used: u64,
    /// The value of the limit.
    pub allowed: u64,
}

impl Exceeded {
    /// Returns the error that ends the run.
    #[must_use]
    pub fn error(&self) -> ErrorRecord {
        let message = format!("the budget is used up: {self}; resume with a larger budget");
        ErrorRecord::new(ErrorCode::BudgetExceeded, message)
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, used, allowed) = (self.limit.as_str(), self.used, self.allowed);
        match self.limit {
            BudgetLimit::Cost => {
                write!(f, "{name}, {} used of {}", Cost(used), Cost(allowed))
            }
            BudgetLimit::WallTime => write!(f, "{name}, {used} ms used of {allowed} ms"),
            _ => write!(f, "{name}, {used} used of {allowed}"),
        }
    }
}
