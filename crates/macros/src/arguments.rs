//! The arguments in the parentheses of the attribute.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, LitStr, Path, Result, Token, parse_quote};

const EXPECTED: &str = "`#[tool]` takes `name = \"…\"`, `description = \"…\"` and `crate = path`; \
    options are set on the tool: `.into_tool().timeout(…)`";

/// The arguments of `#[tool(…)]`.
pub(crate) struct Arguments {
    /// The name under which models call the tool, if it differs from the function's name.
    pub(crate) name: Option<LitStr>,
    /// The description, if it is not the doc comment.
    pub(crate) description: Option<LitStr>,
    /// The path of the crate that contains the `tool` module.
    pub(crate) krate: Path,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut name = None;
        let mut description = None;
        let mut krate = None;
        while !input.is_empty() {
            let key =
                input.call(Ident::parse_any).map_err(|error| Error::new(error.span(), EXPECTED))?;
            match key.to_string().as_str() {
                "name" => set(&mut name, &key, input, |value| value.parse())?,
                "description" => set(&mut description, &key, input, |value| value.parse())?,
                "crate" => set(&mut krate, &key, input, parse_crate)?,
                other => {
                    let message = format!("unknown argument `{other}`; {EXPECTED}");
                    return Err(Error::new_spanned(key, message));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(Self { name, description, krate: krate.unwrap_or_else(|| parse_quote!(::helix_agents)) })
    }
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
