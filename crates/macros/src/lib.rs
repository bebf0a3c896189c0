//! The attribute macros that turn async functions and methods into tools of Helix Agents.
//!
//! The macros only add what a type cannot express: the name and the description. All other options
//! are methods of `Tool`.

mod arguments;
mod definition;
mod description;
mod function;
mod methods;
mod name;
mod problems;
mod tool;

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
/// A tool that needs a client or a connection pool is a method of a struct that has it: see [`tools`](macro@tools).
///
/// # Expansion
///
/// The function becomes a unit struct with the same name, visibility and docs that implements `ToolFunction`. To run
/// the function directly, use `ToolFunction::call`. As with every unit struct, no variable of the same name can be
/// declared where the struct is in scope, except inside the function itself.
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    tool::tool(arguments.into(), &item.into()).into()
}

/// Turns the methods of an `impl` block that have the attribute `#[tool]` into tools. Each method reads its
/// dependencies from `&self`.
///
/// ```ignore
/// use std::sync::Arc;
///
/// use helix_agents::prelude::*;
///
/// struct Shop {
///     catalogue: Catalogue,
/// }
///
/// #[tools]
/// impl Shop {
///     /// Search the product catalogue.
///     #[tool]
///     async fn search(&self, input: Query) -> Result<Vec<Product>, ToolError> {
///         Ok(self.catalogue.search(&input.text).await?)
///     }
///
///     /// Order a product.
///     #[tool(name = "place_order")]
///     async fn order(&self, input: Order, cx: &ToolContext) -> Result<Receipt, ToolError> {
///         Ok(self.catalogue.order(&input, &cx.idempotency_key()).await?)
///     }
/// }
///
/// let shop = Arc::new(Shop { catalogue });
/// let clerk = Agent::builder("clerk").tools(shop.tools());
/// let careful = Agent::builder("careful")
///     .tool(shop.search_tool())
///     .tool(shop.order_tool().require_approval());
/// ```
///
/// # The methods
///
/// A method with `#[tool]` takes `&self`, and otherwise what a function with [`tool`](macro@tool) takes. The arguments
/// `name` and `description` are the same too. The other methods of the block stay as they are. The block may be generic
/// if its type is `Send`, `Sync` and `'static`. It must not implement a trait.
///
/// # Arguments
///
/// - `crate = path`: the crate that contains the `tool` module. Defaults to `::helix_agents`.
///
/// # Expansion
///
/// All methods remain methods. For a tool `search`, the block gets a method `search_tool(self: &Arc<Self>) -> Tool` with
/// the same visibility, on which options can be set. The type implements `ToolMethods`, whose method `tools` returns all
/// tools of the block; so a type has at most one block with `#[tools]`.
#[proc_macro_attribute]
pub fn tools(arguments: TokenStream, item: TokenStream) -> TokenStream {
    methods::tools(arguments.into(), &item.into()).into()
}
