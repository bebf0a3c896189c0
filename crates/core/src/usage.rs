//! What a session used up: tokens, model calls, tools, sub-agents, and what tools count themselves.

mod entry;
mod rollup;
mod tokens;
mod totals;

pub use entry::{UsageEntry, UsageKind};
pub use rollup::{ModelUsage, SubAgentUsage, ToolUsage, UsageRollup};
pub use tokens::Usage;
pub(crate) use totals::UsageTotals;

#[cfg(test)]
mod tests;
