//! The arguments in the parentheses of the attributes.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, LitStr, Path, Result, Token, parse_quote};

const OF_TOOL: &str = "`#[tool]` takes `name = \"…\"`, `description = \"…\"` and `crate = path`; \
    options are set on the tool: `.into_tool().timeout(…)`";
const OF_TOOLS: &str = "`#[tools]` takes `crate = path`; \
    the name and the description are arguments of `#[tool]` on a method";

/// The arguments of `#[tool(…)]`.
#[derive(Default)]
pub(crate) struct Arguments {
    /// The name under which models call the tool, if it differs from the function's name.
    pub(crate) name: Option<LitStr>,
    /// The description, if it is not the doc comment.
    pub(crate) description: Option<LitStr>,
    /// The path of the crate that contains the `tool` module.
    pub(crate) krate: Option<Path>,
}

/// The arguments of `#[tools(…)]`.
pub(crate) struct BlockArguments {
    /// The path of the crate that contains the `tool` module.
    pub(crate) krate: Option<Path>,
}

/// Returns the path of the crate that contains the `tool` module, if no argument names one.
pub(crate) fn default_crate() -> Path {
    parse_quote!(::helix_agents)
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut read = Self::default();
        read_all(input, OF_TOOL, |key, input| {
            match key.to_string().as_str() {
                "name" => set(&mut read.name, key, input, |value| value.parse())?,
                "description" => set(&mut read.description, key, input, |value| value.parse())?,
                "crate" => set(&mut read.krate, key, input, parse_crate)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(read)
    }
}

impl Parse for BlockArguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut krate = None;
        read_all(input, OF_TOOLS, |key, input| {
            let is_crate = key == "crate";
            if is_crate {
                set(&mut krate, key, input, parse_crate)?;
            }
            Ok(is_crate)
        })?;
        Ok(Self { krate })
    }
}

/// Reads arguments separated by commas. `read` reads the value of one argument, and returns `false`
/// if it does not know the key.
fn read_all(
    input: ParseStream<'_>,
    expected: &str,
    mut read: impl FnMut(&Ident, ParseStream<'_>) -> Result<bool>,
) -> Result<()> {
    while !input.is_empty() {
        let key =
            input.call(Ident::parse_any).map_err(|error| Error::new(error.span(), expected))?;
        if !read(&key, input)? {
            let message = format!("unknown argument `{key}`; {expected}");
            return Err(Error::new_spanned(key, message));
        }
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(())
}

fn set<T>(
    slot: &mut Option<T>,
    key: &Ident,
    input: ParseStream<'_>,
    parse: impl FnOnce(ParseStream<'_>) -> Result<T>,
) -> Result<()> {
    input.parse::<Token![=]>()?;
    let value = parse(input)?;
    if slot.replace(value).is_some() {
        let message = format!("`{key}` is given twice");
        return Err(Error::new_spanned(key, message));
    }
    Ok(())
}

fn parse_crate(input: ParseStream<'_>) -> Result<Path> {
    let path = Path::parse_mod_style(input);
    path.map_err(|error| Error::new(error.span(), "expected a path, without quotes"))
}
