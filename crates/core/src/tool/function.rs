//! The typed form of a tool, which `#[tool]` writes.

use std::future::Future;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::context::ToolContext;
use super::definition::Tool;
use super::error::ToolError;

/// A tool as a type: what `#[tool]` makes of an async function.
///
/// Write it by hand where a tool carries data of its own (a client, a pool).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "put `#[tool]` on an async function, or implement `ToolFunction`"
)]
pub trait ToolFunction: Send + Sync + 'static {
    /// What the model has to write; its schema is what the model is shown.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// What the model gets to read, as JSON.
    type Output: Serialize;

    /// The name under which models call it.
    const NAME: &'static str;
    /// What it does and when to call it: the model reads this.
    const DESCRIPTION: &'static str;

    /// Runs the tool. It may run again after a crash, with the same
    /// [`idempotency_key`](ToolContext::idempotency_key), unless its effect class forbids that.
    fn call(
        &self,
        input: Self::Input,
        cx: &ToolContext,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// The erased form, to set options on.
    fn into_tool(self) -> Tool
    where
        Self: Sized,
    {
        Tool::from(self)
    }
}

/// The input of a tool that needs none: an object, whatever is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct NoInput {}

/// What a function under `#[tool]` may return.
#[diagnostic::on_unimplemented(
    message = "a tool must return `Result<T, E>`, not `{Self}`",
    note = "`T` is shown to the model as JSON; `E` is `ToolError` or any error type"
)]
pub trait ToolReturn {
    /// The success type.
    type Output: Serialize;

    /// The same with the error as the model reads it.
    ///
    /// # Errors
    /// The function's own.
    fn into_result(self) -> Result<Self::Output, ToolError>;
}

impl<T: Serialize, E: Into<ToolError>> ToolReturn for Result<T, E> {
    type Output = T;

    fn into_result(self) -> Result<T, ToolError> {
        self.map_err(Into::into)
    }
}
