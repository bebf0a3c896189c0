//! The expansion of `#[tool]`: a free function becomes a type that implements `ToolFunction`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Attribute, Error, Item, ItemFn, Path, Result, Visibility};

use crate::arguments::{Arguments, default_crate};
use crate::definition::Definition;
use crate::function::Place;
use crate::problems::Problems;

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
    definition: Definition,
    function: ItemFn,
}

impl Tool {
    fn read(arguments: TokenStream, item: TokenStream) -> Result<Self> {
        let function = parse_function(item)?;
        let mut problems = Problems::default();
        let arguments = problems.take(syn::parse2::<Arguments>(arguments)).unwrap_or_default();
        let Arguments { name, description, krate } = arguments;
        let given = (name.as_ref(), description.as_ref());
        let (signature, attributes) = (&function.sig, &function.attrs);
        let definition = Definition::read(signature, attributes, Place::Free, given, &mut problems);
        let krate = krate.unwrap_or_else(default_crate);
        problems.finish(definition.map(|definition| Self { krate, definition, function }))
    }

    fn write(mut self) -> TokenStream {
        let attributes = std::mem::take(&mut self.function.attrs);
        let (of_type, of_function) = divide(attributes);
        let documented = of_type.iter().any(|attribute| is(attribute, &["doc"]));
        let description = &self.definition.description;
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
        let Self { krate, definition, function } = self;
        let Definition { name, description, .. } = definition;
        let ident = &function.sig.ident;
        let input = definition.input(krate);
        let output = definition.of_return(krate, "Output");
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
        let Self { krate, definition, function } = self;
        let ident = &function.sig.ident;
        let (input, context) = definition.variables(ident);
        let given = input.into_iter().chain(context);
        let result = definition.result(krate, &quote!(Self::Output));
        let convert = definition.of_return(krate, "into_result");
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
}

fn parse_function(item: TokenStream) -> Result<ItemFn> {
    syn::parse2::<ItemFn>(item.clone()).map_err(|error| match syn::parse2::<Item>(item) {
        Ok(other @ Item::Impl(_)) => Error::new_spanned(
            other,
            "`#[tools]` goes on an `impl` block, and `#[tool]` on its methods",
        ),
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

/// Returns `true` if the attribute has one of these names.
pub(crate) fn is(attribute: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attribute.path().is_ident(name))
}
