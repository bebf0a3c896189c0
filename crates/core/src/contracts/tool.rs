//! Tools that a model can call, and the context that they get when they run.

mod approval;
mod context;
mod definition;
mod error;
mod function;
mod set;

pub use approval::ApprovalContext;
pub(crate) use context::digest;
pub use context::{ToolContext, ToolContextConfig, ToolEffects, ToolStream};
pub use definition::{EffectClass, FinishTransform, Reconcile, ReconcileOutcome, Tool};
pub use error::ToolError;
pub use function::{NoInput, ToolFunction, ToolMethods, ToolReturn};
pub use set::{COMPANION_PREFIX, FINISH_TOOL, SUB_AGENT_PREFIX, ToolSet, ToolSpec, is_reserved};

#[cfg(test)]
mod tests;
