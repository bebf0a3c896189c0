//! The attribute that makes an async function a tool of Helix Agents.
//!
//! Only what types cannot say is here: the name and the description, which a function has and a
//! type has not. Everything else about a tool is said with methods of `Tool`.

mod arguments;
mod description;
mod expand;
mod function;
mod name;
mod problems;

use proc_macro::TokenStream;

/// Makes an async function a tool.
///
/// ```ignore
/// use helix_agents::tool::{ToolContext, ToolError};
/// use helix_agents::tool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Query {
///     /// What to look for.
///     text: String,
/// }
///
/// #[tool]
/// /// Search the product catalogue.
/// async fn search(input: Query, cx: &ToolContext) -> Result<Vec<String>, ToolError> {
///     cx.progress("searching", None);
///     Ok(vec![input.text])
/// }
///
/// let plain = Agent::builder("shop").tool(search);
/// let patient = Agent::builder("shop").tool(search.into_tool().timeout(Duration::from_secs(60)));
/// ```
///
/// # The function
///
/// It is `async`, returns `Result<T, E>`, and takes nothing, the input, the context, or both in
/// this order: `input: T, cx: &ToolContext`. The input may be taken apart in place:
/// `Query { text }: Query`. `T` of the input is read with serde, and its schema made with schemars;
/// the model sees the doc comments of its fields. `T` of the result is written with serde. `E` is
/// `ToolError` or any error type.
///
/// The doc comment is the description, by which models choose: lines of a paragraph are joined,
/// paragraphs, lists and code blocks are kept.
///
/// # Arguments
///
/// - `name = "…"`: the name under which models call it, if it is not the function's.
/// - `description = "…"`: the description, if it is not the doc comment.
/// - `crate = path`: where to find the `tool` module; `::helix_agents` if not given.
///
/// Everything else is an option of `Tool`: `search.into_tool().timeout(…)`.
///
/// # What becomes of the function
///
/// A unit struct of its name, visibility and docs that implements `ToolFunction`. To run the
/// function by hand, use `ToolFunction::call`. As with every unit struct, no variable of the same
/// name can be declared where it is in scope (inside of the function itself one can).
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::tool(arguments.into(), &item.into()).into()
}
