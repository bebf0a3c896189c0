//! The attribute macro that turns an async function into a tool of Helix Agents.
//!
//! The macro only adds what a type cannot express: the name and the description. All other options
//! are methods of `Tool`.

mod arguments;
mod description;
mod expand;
mod function;
mod name;
mod problems;

use proc_macro::TokenStream;

/// Turns an async function into a tool.
///
/// ```ignore
/// use helix_agents::tool::{ToolContext, ToolError};
/// use helix_agents::tool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Query {
///     /// The text to search for.
///     text: String,
/// }
///
/// /// Search the product catalogue.
/// #[tool]
/// async fn search(input: Query, cx: &ToolContext) -> Result<Vec<String>, ToolError> {
///     cx.progress("searching", None);
///     Ok(vec![input.text])
/// }
///
/// let plain = Agent::builder("shop").tool(search);
/// let with_timeout = Agent::builder("shop").tool(search.into_tool().timeout(Duration::from_secs(60)));
/// ```
///
/// # The function
///
/// The function is `async` and returns `Result<T, E>`. It takes no parameters, the input, the context, or both in this
/// order: `input: T, cx: &ToolContext`. The input may be destructured in place: `Query { text }: Query`. The input
/// type is deserialized with serde, and its schema is generated with schemars; the model sees the doc comments of its
/// fields. The result type is serialized with serde. `E` is `ToolError` or any error type.
///
/// The doc comment is the description by which models choose tools. The lines of a paragraph are
/// joined; paragraphs, lists and code blocks are kept.
///
/// # Arguments
///
/// - `name = "…"`: the name under which models call the tool. Defaults to the function's name.
/// - `description = "…"`: the description. Defaults to the doc comment.
/// - `crate = path`: the crate that contains the `tool` module. Defaults to `::helix_agents`.
///
/// All other options are methods of `Tool`: `search.into_tool().timeout(…)`.
///
/// # Expansion
///
/// The function becomes a unit struct with the same name, visibility and docs that implements `ToolFunction`. To run
/// the function directly, use `ToolFunction::call`. As with every unit struct, no variable of the same name can be
/// declared where the struct is in scope, except inside the function itself.
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(arguments.into(), &item.into()).into()
}
