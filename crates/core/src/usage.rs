//! What a session used up: tokens, model calls, tools, sub-agents, and what tools count themselves.

mod entry;
mod rollup;
mod tokens;

pub use entry::{UsageEntry, UsageKind};
pub use rollup::{ModelUsage, SubAgentUsage, ToolUsage, UsageRollup};
pub use tokens::Usage;

#[cfg(test)]
mod tests;
