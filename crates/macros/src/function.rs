//! The function under the attribute: its parameters and its return type.

use syn::visit::{self, Visit};
use syn::{
    Attribute, FnArg, GenericParam, PatType, ReceiverKind, ReturnType, Signature, Type,
    TypeReference,
};

use crate::problems::Problems;

const CONTEXT_IS_A_REFERENCE: &str = "the context is taken by reference: `cx: &ToolContext`";
const PARAMETERS: &str =
    "a tool takes at most an input and its context, in this order: `input: T, cx: &ToolContext`";

/// The place of a tool function in the source.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Outside of an `impl` block.
    Free,
    /// In an `impl` block with `#[tools]`.
    Method,
}

/// The signature of a tool function.
pub(crate) struct Shape {
    pub(crate) parameters: Parameters,
    /// The return type.
    pub(crate) returns: Type,
}

/// The parameters of a tool function.
#[derive(Default)]
pub(crate) struct Parameters {
    /// The type of the input.
    pub(crate) input: Option<Type>,
    /// The type of the context, which is a reference.
    pub(crate) context: Option<Type>,
}

/// Returns the signature of a function, or `None` if it cannot be a tool.
pub(crate) fn shape(
    signature: &Signature,
    attributes: &[Attribute],
    place: Place,
    problems: &mut Problems,
) -> Option<Shape> {
    check_keywords(signature, problems);
    check_attribute(attributes, problems);
    check_generics(signature, problems);
    check_receiver(signature, place, problems);
    let parameters = read_parameters(signature, problems);
    let ReturnType::Type(_, returns) = &signature.output else {
        problems.at(
            &signature.ident,
            "a tool must return `Result<T, E>`; `Result<(), ToolError>` if there is no output",
        );
        return None;
    };
    check_owned(returns, "output", problems);
    Some(Shape { parameters, returns: (**returns).clone() })
}

fn check_keywords(signature: &Signature, problems: &mut Problems) {
    if signature.asyncness.is_none() {
        problems.at(signature.fn_token, "a tool must be async: `async fn`");
    }
    if let Some(keyword) = &signature.constness {
        problems.at(keyword, "a tool cannot be const");
    }
    if let syn::Safety::Unsafe(keyword) = &signature.safety {
        problems.at(keyword, "a tool cannot be unsafe");
    }
    if let Some(abi) = &signature.abi {
        problems.at(abi, "a tool cannot be extern");
    }
}

/// Checks that there is no second `#[tool]`; the first one is not among the attributes.
fn check_attribute(attributes: &[Attribute], problems: &mut Problems) {
    if let Some(again) = attributes.iter().find(|attribute| is_tool(attribute)) {
        problems.at(again, "`#[tool]` is given twice");
    }
}

/// Returns `true` for the attribute `#[tool]`, with or without a path before its name.
pub(crate) fn is_tool(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == "tool")
}

fn check_receiver(signature: &Signature, place: Place, problems: &mut Problems) {
    match (signature.receiver(), place) {
        (None, Place::Free) => {}
        (Some(receiver), Place::Free) => {
            problems.at(receiver, "a method is a tool only in an `impl` block with `#[tools]`");
        }
        (None, Place::Method) => problems.at(
            &signature.ident,
            "a tool in an `impl` block takes `&self`; without it, make it a free function",
        ),
        (Some(receiver), Place::Method) => {
            if !matches!(receiver.kind, ReceiverKind::Reference(_, None, None)) {
                problems
                    .at(receiver, "a tool takes `&self`, because several calls can run at once");
            }
        }
    }
}

fn check_generics(signature: &Signature, problems: &mut Problems) {
    let generics = &signature.generics;
    for parameter in &generics.params {
        let message = match parameter {
            GenericParam::Lifetime(_) => "a tool cannot have lifetimes: it owns its input",
            _ => "a tool cannot be generic: models call it with one schema",
        };
        problems.at(parameter, message);
    }
    if let (true, Some(clause)) = (generics.params.is_empty(), &generics.where_clause) {
        problems.at(clause, "a tool cannot have a where clause");
    }
}

fn read_parameters(signature: &Signature, problems: &mut Problems) -> Parameters {
    let mut read = Parameters::default();
    let mut typed = Vec::new();
    for parameter in &signature.inputs {
        let FnArg::Typed(parameter) = parameter else { continue };
        check_doc(parameter, problems);
        typed.push(parameter);
    }
    match typed.as_slice() {
        [] => {}
        [only] if is_context(&only.ty) => read_context(only, &mut read, problems),
        [only] => read_input(only, &mut read, problems),
        [first, second] if is_context(&first.ty) && !is_context(&second.ty) => {
            problems.at(first, PARAMETERS);
            read_input(second, &mut read, problems);
        }
        [input, context] => {
            read_input(input, &mut read, problems);
            read_context(context, &mut read, problems);
        }
        _ => problems.at(
            &signature.inputs,
            "a tool takes at most an input and its context: make the parameters fields of one input",
        ),
    }
    if let Some(variadic) = &signature.variadic {
        problems.at(variadic, PARAMETERS);
    }
    read
}

fn check_doc(parameter: &PatType, problems: &mut Problems) {
    let doc = parameter.attrs.iter().find(|a| a.path().is_ident("doc"));
    if let Some(doc) = doc {
        problems.at(doc, "models do not see this: document the fields of the input type");
    }
}

fn read_input(parameter: &PatType, read: &mut Parameters, problems: &mut Problems) {
    if is_context(&parameter.ty) {
        problems.at(parameter, PARAMETERS);
        return;
    }
    check_owned(&parameter.ty, "input", problems);
    read.input = Some((*parameter.ty).clone());
}

fn read_context(parameter: &PatType, read: &mut Parameters, problems: &mut Problems) {
    let Type::Reference(reference) = plain(&parameter.ty) else {
        if is_context(&parameter.ty) {
            problems.at(&parameter.ty, CONTEXT_IS_A_REFERENCE);
        } else {
            problems.at(parameter, PARAMETERS);
        }
        return;
    };
    if let Some(lifetime) = reference.lifetime.as_ref().filter(|l| l.ident != "_") {
        problems.at(lifetime, "the context lives as long as the call");
    } else if let Some(keyword) = &reference.mutability {
        problems.at(keyword, "the context is shared: `cx: &ToolContext`");
    } else if is_context(&parameter.ty) {
        read.context = Some((*parameter.ty).clone());
    } else {
        problems.at(parameter, PARAMETERS);
    }
}

/// Returns `true` if a type is `ToolContext` or a reference to it, judged by name.
fn is_context(ty: &Type) -> bool {
    match plain(ty) {
        Type::Reference(TypeReference { elem, .. }) => is_context(elem),
        Type::Path(path) => {
            let last = path.path.segments.last();
            last.is_some_and(|segment| segment.ident == "ToolContext")
        }
        _ => false,
    }
}

/// Returns a type without the invisible group around it that macro expansion adds.
fn plain(mut ty: &Type) -> &Type {
    while let Type::Group(group) = ty {
        ty = &group.elem;
    }
    ty
}

/// Checks that an input or output type has a name and borrows nothing, because its values are
/// exchanged with the model.
fn check_owned(ty: &Type, what: &'static str, problems: &mut Problems) {
    Owned { what, problems }.visit_type(ty);
}

struct Owned<'a> {
    what: &'static str,
    problems: &'a mut Problems,
}

impl<'ast> Visit<'ast> for Owned<'_> {
    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        if reference.lifetime.is_none() {
            let message = format!("the {} of a tool must be owned, not borrowed", self.what);
            self.problems.at(reference, &message);
        }
        visit::visit_type_reference(self, reference);
    }

    fn visit_lifetime(&mut self, lifetime: &'ast syn::Lifetime) {
        if lifetime.ident != "static" {
            let message = format!("the {} of a tool must be owned, not borrowed", self.what);
            self.problems.at(lifetime, &message);
        }
    }

    fn visit_type_impl_trait(&mut self, ty: &'ast syn::TypeImplTrait) {
        let message = format!("the {} of a tool must be a named type", self.what);
        self.problems.at(ty, &message);
    }
}
