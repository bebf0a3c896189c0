//! The expansion of the attribute: parses the item and generates the tool.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Attribute, Error, Item, ItemFn, Path, Result, Visibility};

use crate::arguments::Arguments;
use crate::function::{self, Parameters, Shape};
use crate::problems::Problems;
use crate::{description, name};

/// Expands `#[tool(arguments)]` on an item. If there are errors, the item is kept unchanged next to
/// them, so that editors can still analyze it.
pub(crate) fn tool(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    match Tool::read(arguments, item.clone()) {
        Ok(tool) => tool.write(),
        Err(error) => {
            let error = error.into_compile_error();
            quote!(#error #item)
        }
    }
}

/// A function that can be a tool.
struct Tool {
    krate: Path,
    name: String,
    description: String,
    shape: Shape,
    function: ItemFn,
}

impl Tool {
    fn read(arguments: TokenStream, item: TokenStream) -> Result<Self> {
        let function = parse_function(item)?;
        let mut problems = Problems::default();
        let arguments = problems.take(syn::parse2::<Arguments>(arguments));
        let shape = function::shape(&function, &mut problems);
        let ident = &function.sig.ident;
        let named = arguments.and_then(|Arguments { name, description, krate }| {
            let name = problems.take(name::of(ident, name.as_ref()));
            let text = description::of(ident, &function.attrs, description.as_ref());
            Some((krate, name?, problems.take(text)?))
        });
        let tool = named.zip(shape);
        let tool = tool.map(|((krate, name, description), shape)| Self {
            krate,
            name,
            description,
            shape,
            function,
        });
        problems.finish(tool)
    }

    fn write(mut self) -> TokenStream {
        let attributes = std::mem::take(&mut self.function.attrs);
        let (of_type, of_function) = divide(attributes);
        let documented = of_type.iter().any(|attribute| is(attribute, &["doc"]));
        let description = &self.description;
        let doc = (!documented).then(|| quote!(#[doc = #description]));
        let deprecated = of_type.iter().any(|attribute| is(attribute, &["deprecated"]));
        let still_a_tool = deprecated
            .then(|| quote!(#[allow(deprecated, reason = "a deprecated tool is still a tool")]));
        let conditions = of_type.iter().filter(|attribute| is(attribute, &["cfg"]));
        let visibility = std::mem::replace(&mut self.function.vis, Visibility::Inherited);
        let ident = self.function.sig.ident.clone();
        self.function.attrs = of_function;
        let implementation = self.write_implementation();
        quote! {
            #doc
            #(#of_type)*
            #[allow(non_camel_case_types, reason = "a tool is named as its function")]
            #[derive(::core::fmt::Debug, ::core::clone::Clone, ::core::marker::Copy)]
            #visibility struct #ident;

            #(#conditions)*
            #still_a_tool
            #implementation
        }
    }

    fn write_implementation(&self) -> TokenStream {
        let Self { krate, name, description, shape, function } = self;
        let ident = &function.sig.ident;
        let input = shape
            .parameters
            .input
            .as_ref()
            .map_or_else(|| quote!(#krate::tool::NoInput), ToTokens::to_token_stream);
        let output = self.of_return("Output");
        let call = self.write_call();
        quote! {
            impl #krate::tool::ToolFunction for #ident {
                type Input = #input;
                type Output = #output;

                const NAME: &'static str = #name;
                const DESCRIPTION: &'static str = #description;

                #call
            }
        }
    }

    /// Generates `call`, in which the function is nested under its own name. There it shadows the
    /// struct, so that the function's parameters and variables may have that name. Errors in the
    /// body are reported at that name, and type errors are reported at the type.
    fn write_call(&self) -> TokenStream {
        let function = &self.function;
        let ident = &function.sig.ident;
        let krate = &self.krate;
        let Parameters { input, context } = &self.shape.parameters;
        let input = input.as_ref().map(|ty| (ty, "__input"));
        let context = context.as_ref().map(|ty| (ty, "__cx"));
        let given = input.into_iter().chain(context);
        let given = given.map(|(ty, name)| Ident::new(name, ty.span().resolved_at(ident.span())));
        let result = self.result();
        let convert = self.of_return("into_result");
        quote_spanned! {ident.span()=>
            async fn call(
                &self,
                __input: Self::Input,
                __cx: &#krate::tool::ToolContext,
            ) -> #result {
                #[allow(clippy::unused_async, reason = "a tool is async even if it never waits")]
                #function

                let __result = #ident(#(#given),*).await;
                let __convert = #convert;
                __convert(__result)
            }
        }
    }

    /// Returns the return type of `call`, with the spans of the function's return type.
    fn result(&self) -> TokenStream {
        let (first, last) = ends(&self.shape.returns);
        let krate = &self.krate;
        let start = quote_spanned!(first=> ::core::result::Result);
        let end = quote_spanned!(last=> <Self::Output, #krate::tool::ToolError>);
        quote!(#start #end)
    }

    /// Returns `<Return as ToolReturn>::item` with the spans of the return type, so that errors are
    /// reported there.
    fn of_return(&self, item: &str) -> TokenStream {
        let returns = &self.shape.returns;
        let (first, last) = ends(returns);
        let krate = &self.krate;
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

fn parse_function(item: TokenStream) -> Result<ItemFn> {
    syn::parse2::<ItemFn>(item.clone()).map_err(|error| match syn::parse2::<Item>(item) {
        Ok(other) => Error::new_spanned(other, "`#[tool]` goes on an async function"),
        Err(_) => error,
    })
}

/// Splits the attributes into those of the struct and those of the inner function. Lint levels
/// apply to both.
fn divide(attributes: Vec<Attribute>) -> (Vec<Attribute>, Vec<Attribute>) {
    const BOTH: [&str; 4] = ["allow", "warn", "deny", "forbid"];
    let (mut of_type, mut of_function) = (Vec::new(), Vec::new());
    for attribute in attributes {
        if is(&attribute, &BOTH) {
            of_type.push(attribute.clone());
            of_function.push(attribute);
        } else if is(&attribute, &["doc", "cfg", "deprecated"]) {
            of_type.push(attribute);
        } else {
            of_function.push(attribute);
        }
    }
    (of_type, of_function)
}

fn is(attribute: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attribute.path().is_ident(name))
}
