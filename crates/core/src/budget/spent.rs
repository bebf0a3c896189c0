//! What was used of a budget.

use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::Budget;
use super::cost::Cost;
use crate::error::{ErrorCode, ErrorRecord};
use crate::usage::UsageRollup;

/// What a session has used of a budget, the children that ended included. It never becomes less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BudgetUsage {
    /// Model calls.
    pub steps: u64,
    /// Input and output tokens.
    pub tokens: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Milliseconds during which its own runs were under way. What children take lies within it.
    pub wall_time_ms: u64,
    /// What the model calls cost.
    pub cost: Cost,
}

impl BudgetUsage {
    /// What a child is set down with.
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

    /// What came on top of `earlier`.
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

    /// The greater of the two in every respect: the later one of two reports of the same session.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            steps: self.steps.max(other.steps),
            tokens: self.tokens.max(other.tokens),
            tool_calls: self.tool_calls.max(other.tool_calls),
            wall_time_ms: self.wall_time_ms.max(other.wall_time_ms),
            cost: Cost(self.cost.0.max(other.cost.0)),
        }
    }

    /// What a child may use, as if it had.
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

/// Which limit of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BudgetLimit {
    /// Model calls.
    Steps,
    /// Tokens.
    Tokens,
    /// Tool calls.
    ToolCalls,
    /// Time under way.
    WallTime,
    /// Money.
    Cost,
}

impl BudgetLimit {
    /// Its name in errors and in the budget.
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

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Which one.
    pub limit: BudgetLimit,
    /// What was used: a count, milliseconds, or parts of a dollar as [`Cost`] has them.
    pub used: u64,
    /// What was allowed.
    pub allowed: u64,
}

impl Exceeded {
    /// The error of the run.
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
