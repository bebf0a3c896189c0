//! The typed forms of tools, which `#[tool]` and `#[tools]` generate.

use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::context::ToolContext;
use super::definition::Tool;
use super::error::ToolError;

/// A tool as a type. `#[tool]` generates an implementation from an async function.
///
/// A tool with its own data, such as a client or a pool, is a method of a type that
/// implements [`ToolMethods`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "put `#[tool]` on an async function, or implement `ToolFunction`"
)]
pub trait ToolFunction: Send + Sync + 'static {
    /// The arguments. The model sees the JSON schema of this type.
    type Input: DeserializeOwned + JsonSchema + Send;
    /// The result, which the model reads as JSON.
    type Output: Serialize;

    /// The name under which models call the tool.
    const NAME: &'static str;
    /// A description for the model: what the tool does and when to call it.
    const DESCRIPTION: &'static str;

    /// Runs the tool. After a crash it may run again with the same
    /// [`idempotency_key`](ToolContext::idempotency_key), unless its effect class forbids that.
    fn call(
        &self,
        input: Self::Input,
        cx: &ToolContext,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;

    /// Converts the function into a [`Tool`], on which options can be set.
    fn into_tool(self) -> Tool
    where
        Self: Sized,
    {
        Tool::from(self)
    }
}

/// A type whose methods are tools. `#[tools]` on an `impl` block generates an implementation.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no tools",
    note = "put `#[tools]` on an `impl` block, and `#[tool]` on its methods"
)]
pub trait ToolMethods: Send + Sync + 'static {
    /// Returns the tools, in the order of their methods. They share this value.
    fn tools(self: &Arc<Self>) -> Vec<Tool>;
}

/// The input of a tool without arguments: a JSON object whose content is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "")]
pub struct NoInput {}

/// The return type of a function with the attribute `#[tool]`.
#[diagnostic::on_unimplemented(
    message = "a tool must return `Result<T, E>`, not `{Self}`",
    note = "`T` is shown to the model as JSON; `E` is `ToolError` or any error type"
)]
pub trait ToolReturn {
    /// The success type.
    type Output: Serialize;

    /// Converts the error into a [`ToolError`].
    ///
    /// # Errors
    /// Returns the function's error.
    fn into_result(self) -> Result<Self::Output, ToolError>;
}

impl<T: Serialize, E: Into<ToolError>> ToolReturn for Result<T, E> {
    type Output = T;

    fn into_result(self) -> Result<T, ToolError> {
        self.map_err(Into::into)
    }
}
