//! The definition of a tool: what `#[tool]` generates for free functions and for methods alike.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, LitStr, Path, Signature, Type};

use crate::function::{self, Place, Shape};
use crate::problems::Problems;
use crate::{description, name};

/// The name, the description and the types of a tool.
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) shape: Shape,
}

impl Definition {
    /// Reads a definition from a function. `name` and `description` are arguments of the attribute.
    pub(crate) fn read(
        signature: &Signature,
        attributes: &[Attribute],
        place: Place,
        (name, description): (Option<&LitStr>, Option<&LitStr>),
        problems: &mut Problems,
    ) -> Option<Self> {
        let shape = function::shape(signature, attributes, place, problems);
        let name = problems.take(name::of(&signature.ident, name));
        let description = problems.take(description::of(&signature.ident, attributes, description));
        Some(Self { name: name?, description: description?, shape: shape? })
    }

    /// Returns the type of the input.
    pub(crate) fn input(&self, krate: &Path) -> TokenStream {
        let input = self.shape.parameters.input.as_ref();
        input.map_or_else(|| quote!(#krate::tool::NoInput), ToTokens::to_token_stream)
    }

    /// Returns the variables `__input` and `__cx`, as far as the function takes them, with the spans
    /// of the parameters' types, so that type errors are reported there.
    pub(crate) fn variables(&self, function: &Ident) -> (Option<Ident>, Option<Ident>) {
        let variable = |ty: &Option<Type>, name| {
            let ty = ty.as_ref()?;
            Some(Ident::new(name, ty.span().resolved_at(function.span())))
        };
        let parameters = &self.shape.parameters;
        (variable(&parameters.input, "__input"), variable(&parameters.context, "__cx"))
    }

    /// Returns `Result<output, ToolError>` with the spans of the function's return type.
    pub(crate) fn result(&self, krate: &Path, output: &TokenStream) -> TokenStream {
        let (first, last) = ends(&self.shape.returns);
        let start = quote_spanned!(first=> ::core::result::Result);
        let end = quote_spanned!(last=> <#output, #krate::tool::ToolError>);
        quote!(#start #end)
    }

    /// Returns `<Return as ToolReturn>::item` with the spans of the return type, so that errors are
    /// reported there.
    pub(crate) fn of_return(&self, krate: &Path, item: &str) -> TokenStream {
        let returns = &self.shape.returns;
        let (first, last) = ends(returns);
        let item = Ident::new(item, last);
        let start = quote_spanned!(first=> <#returns as);
        let end = quote_spanned!(last=> #krate::tool::ToolReturn>::#item);
        quote!(#start #end)
    }
}

/// Returns the spans of the first and the last token.
fn ends(tokens: &impl ToTokens) -> (Span, Span) {
    let tokens = tokens.to_token_stream();
    let mut places = tokens.into_iter().map(|token| token.span());
    let first = places.next().unwrap_or_else(Span::call_site);
    (first, places.last().unwrap_or(first))
}
