//! The expansion of `#[tools]`: an `impl` block whose methods with `#[tool]` become tools.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, ImplItem, ImplItemFn, ItemImpl, Meta, Path, Result, parse_quote};

use crate::arguments::{Arguments, BlockArguments, default_crate};
use crate::definition::Definition;
use crate::function::{Place, is_tool};
use crate::problems::Problems;
use crate::tool::is;

/// Expands `#[tools(arguments)]` on an item. If there are errors, the item is kept next to them, so
/// that editors can still analyze it.
pub(crate) fn tools(arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(mut block) = syn::parse2::<ItemImpl>(item.clone()) else {
        let error = Error::new_spanned(item, "`#[tools]` goes on an `impl` block");
        let error = error.into_compile_error();
        return quote!(#error #item);
    };
    match Methods::take(arguments, &mut block) {
        Ok(methods) => {
            let tools = methods.write(&block);
            quote!(#block #tools)
        }
        Err(error) => {
            let error = error.into_compile_error();
            quote!(#error #block)
        }
    }
}

/// The tools of an `impl` block.
struct Methods {
    krate: Path,
    tools: Vec<MethodTool>,
}

/// A method that is a tool.
struct MethodTool {
    definition: Definition,
    method: ImplItemFn,
}

impl Methods {
    /// Reads the methods with `#[tool]`, and removes that attribute from them.
    fn take(arguments: TokenStream, block: &mut ItemImpl) -> Result<Self> {
        let mut problems = Problems::default();
        let arguments = problems.take(syn::parse2::<BlockArguments>(arguments));
        let krate = arguments.and_then(|arguments| arguments.krate).unwrap_or_else(default_crate);
        if let Some((path, _)) = &block.trait_ {
            problems.at(path, "`#[tools]` goes on an `impl` block without a trait");
        }
        let mut marks = 0;
        let mut tools = Vec::new();
        for item in &mut block.items {
            let ImplItem::Fn(method) = item else { continue };
            let Some(at) = method.attrs.iter().position(is_tool) else { continue };
            marks += 1;
            let mark = method.attrs.remove(at);
            let arguments = problems.take(read_mark(&mark)).unwrap_or_default();
            if let Some(krate) = &arguments.krate {
                problems.at(krate, "give the crate to `#[tools]`");
            }
            let given = (arguments.name.as_ref(), arguments.description.as_ref());
            let (signature, attributes) = (&method.sig, &method.attrs);
            let definition =
                Definition::read(signature, attributes, Place::Method, given, &mut problems);
            method.attrs.push(parse_quote! {
                #[allow(clippy::unused_async, reason = "a tool is async even if it never waits")]
            });
            tools.extend(
                definition.map(|definition| MethodTool { definition, method: method.clone() }),
            );
        }
        if marks == 0 {
            problems.at(&block.self_ty, "no method of the block has the attribute `#[tool]`");
        }
        problems.finish(Some(Self { krate, tools }))
    }

    /// Generates the constructor of each tool, and the list of all of them.
    fn write(&self, block: &ItemImpl) -> TokenStream {
        let krate = &self.krate;
        let (generics, _, bounds) = block.generics.split_for_impl();
        let ty = &block.self_ty;
        let of_block: Vec<_> = conditions(&block.attrs).collect();
        let constructors = self.tools.iter().map(|tool| tool.write(krate));
        let pushes = self.tools.iter().map(|tool| {
            let (conditions, constructor) = (conditions(&tool.method.attrs), tool.constructor());
            quote!(#(#conditions)* __tools.push(Self::#constructor(self));)
        });
        quote! {
            #(#of_block)*
            impl #generics #ty #bounds {
                #(#constructors)*
            }

            #(#of_block)*
            impl #generics #krate::tool::ToolMethods for #ty #bounds {
                fn tools(self: &::std::sync::Arc<Self>) -> ::std::vec::Vec<#krate::tool::Tool> {
                    let mut __tools = ::std::vec::Vec::new();
                    #(#pushes)*
                    __tools
                }
            }
        }
    }
}

impl MethodTool {
    /// Returns the name of the function that creates the tool.
    fn constructor(&self) -> Ident {
        let ident = &self.method.sig.ident;
        format_ident!("{}_tool", ident.unraw(), span = ident.span())
    }

    fn write(&self, krate: &Path) -> TokenStream {
        let Self { definition, method } = self;
        let Definition { name, description, .. } = definition;
        let constructor = self.constructor();
        let (visibility, ident) = (&method.vis, &method.sig.ident);
        let attributes = method.attrs.iter();
        let conditions = attributes.filter(|attribute| is(attribute, &["cfg", "deprecated"]));
        let doc = format!(
            "Returns the tool [`{name}`](Self::{}), to set options on it or to add it to an agent.",
            ident.unraw()
        );
        let input = definition.input(krate);
        let result = definition.result(krate, &definition.of_return(krate, "Output"));
        let convert = definition.of_return(krate, "into_result");
        let (given_input, given_context) = definition.variables(ident);
        let or_unused =
            |name: &Option<Ident>| name.as_ref().map_or(quote!(_), |name| quote!(#name));
        let (input_name, context_name) = (or_unused(&given_input), or_unused(&given_context));
        let context = given_context.iter().map(|context| quote!(&#context));
        let given = given_input.iter().map(|input| quote!(#input)).chain(context);
        // An input type that does not fit is reported at the type.
        let span =
            self.definition.shape.parameters.input.as_ref().map_or(ident.span(), Spanned::span);
        let function = located_at(span, quote!(#krate::tool::Tool::function));
        quote_spanned! {ident.span()=>
            #(#conditions)*
            #[doc = #doc]
            #[allow(deprecated, reason = "a deprecated tool is still a tool")]
            #visibility fn #constructor(self: &::std::sync::Arc<Self>) -> #krate::tool::Tool {
                let __this = ::std::sync::Arc::clone(self);
                #function(
                    #name,
                    #description,
                    move |#input_name: #input, #context_name: #krate::tool::ToolContext| {
                        let __this = ::std::sync::Arc::clone(&__this);
                        async move {
                            let __result = Self::#ident(&__this, #(#given),*).await;
                            let __convert = #convert;
                            let __result: #result = __convert(__result);
                            __result
                        }
                    },
                )
            }
        }
    }
}

/// Reads the arguments of `#[tool]` on a method.
fn read_mark(mark: &Attribute) -> Result<Arguments> {
    match &mark.meta {
        Meta::Path(_) => Ok(Arguments::default()),
        _ => mark.parse_args(),
    }
}

/// Returns tokens with another location, so that errors are reported there.
fn located_at(span: Span, tokens: TokenStream) -> TokenStream {
    let located = tokens.into_iter().map(|mut token| {
        token.set_span(span.resolved_at(token.span()));
        token
    });
    located.collect()
}

fn conditions(attributes: &[Attribute]) -> impl Iterator<Item = &Attribute> {
    attributes.iter().filter(|attribute| is(attribute, &["cfg"]))
}
