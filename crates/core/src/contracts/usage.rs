//! Usage of sessions: tokens, model calls, tools, sub-agents, and amounts that tools record
//! themselves.

mod bounded;
mod by_name;
mod entry;
mod groups;
mod rollup;
mod tokens;
mod totals;

pub use bounded::{MAX_SESSION_SOURCES, MAX_SOURCE_BYTES, OTHER_NAMES};
pub use by_name::UsageByName;
pub use entry::{UsageEntry, UsageKind};
pub use groups::{UsageGroup, UsageSource};
pub use rollup::{CustomRecords, ModelUsage, SubAgentUsage, ToolUsage, UsageRollup};
pub use tokens::Usage;
pub(crate) use totals::UsageTotals;

#[cfg(test)]
mod tests;
