//! Tools: what a model may call, and what they are handed when it does.

mod context;
mod definition;
mod error;
mod function;
mod outcome;
mod people;
mod set;

pub(crate) use context::digest;
pub use context::{ToolContext, ToolContextParts, ToolEffects, ToolFeed};
pub use definition::{EffectClass, FinishTransform, Reconcile, Reconciled, Tool};
pub use error::ToolError;
pub use function::{NoInput, ToolFunction, ToolReturn};
pub use outcome::{finish_output, judge, settle};
pub use people::ApprovalContext;
pub use set::{COMPANION_PREFIX, FINISH_TOOL, SUB_AGENT_PREFIX, ToolSet, ToolSpec, is_reserved};

#[cfg(test)]
mod tests;
