//! The expansion compiles cleanly in any context. Most of the test is that this file compiles.

#![deny(warnings, reason = "a user's crate may deny them")]

use helix_agents::tool;
use helix_agents_core::tool::{ToolContext, ToolError, ToolFunction};

use super::context;

/// Names that generated code could conflict with.
mod hostile {
    #![allow(dead_code, non_camel_case_types, reason = "the names are not used")]

    pub(crate) struct Result;
    pub(crate) struct Option;
    pub(crate) struct Clone;
    pub(crate) struct Copy;
    pub(crate) struct Debug;
    pub(crate) struct ToolFunction;
    pub(crate) struct ToolReturn;
    pub(crate) struct NoInput;
    pub(crate) struct Send;
    pub(crate) mod core {}
    pub(crate) mod helix_agents {}

    /// Reads the clock.
    #[::helix_agents::tool(crate = ::helix_agents_core)]
    pub(crate) async fn clock() -> ::core::result::Result<u8, ::helix_agents_core::tool::ToolError>
    {
        Ok(12)
    }
}

mod condition {
    use super::{ToolError, tool};

    /// Is not compiled.
    #[tool(crate = helix_agents_core)]
    #[cfg(not(test))]
    pub(crate) async fn lookup() -> Result<Missing, ToolError> {
        Ok(Missing)
    }

    /// Is compiled.
    #[tool(crate = helix_agents_core)]
    #[cfg(test)]
    pub(crate) async fn lookup() -> Result<(), ToolError> {
        Ok(())
    }
}

/// Is deprecated.
#[tool(crate = helix_agents_core)]
#[deprecated(note = "use `clock`")]
async fn sundial() -> Result<u8, ToolError> {
    Ok(12)
}

macro_rules! made_by_a_macro {
    ($name:ident, $input:ty, $context:ty, $result:ty) => {
        /// Is made by a macro.
        #[tool(crate = $crate::macros::framework)]
        async fn $name(input: $input, cx: $context) -> $result {
            Ok(format!("{input} {}", cx.step()))
        }
    };
}

made_by_a_macro!(made, String, &ToolContext, Result<String, ToolError>);

/// Has its own lint levels, for the name and for the body.
#[tool(crate = helix_agents_core)]
#[allow(dead_code, unused_variables, reason = "shown to be forwarded")]
async fn unused(input: u8) -> Result<(), ToolError> {
    Ok(())
}

/// A unit struct and a variable of the same name conflict, so this tool has its own module.
mod own_module {
    use super::{ToolError, tool};

    /// Uses the names that the generated code uses.
    #[tool(crate = helix_agents_core)]
    pub(crate) async fn input(cx: String) -> Result<String, ToolError> {
        let input = cx;
        Ok(input)
    }
}

#[tokio::test]
async fn names_in_scope_do_not_matter() {
    let nothing = helix_agents_core::tool::NoInput {};
    assert_eq!(hostile::clock.call(nothing, &context()).await.unwrap(), 12);
    let answer = own_module::input.call("same".to_owned(), &context()).await.unwrap();
    assert_eq!(answer, "same");
}

#[tokio::test]
async fn conditions_apply_to_the_whole_expansion() {
    let nothing = helix_agents_core::tool::NoInput {};
    condition::lookup.call(nothing, &context()).await.unwrap();
}

#[tokio::test]
async fn macros_can_make_tools() {
    let answer = made.call("step".to_owned(), &context()).await.unwrap();
    assert_eq!(answer, "step 3");
}

#[test]
#[expect(deprecated, reason = "the attribute is forwarded")]
fn deprecation_is_forwarded() {
    assert_eq!(format!("{sundial:?}"), "sundial");
}

#[tokio::test]
async fn a_tool_can_be_made_inside_of_a_function() {
    /// Counts.
    #[tool(crate = helix_agents_core)]
    async fn count(cx: &ToolContext) -> Result<u32, ToolError> {
        Ok(cx.attempt())
    }
    let copy = count;
    let nothing = helix_agents_core::tool::NoInput {};
    assert_eq!(count.call(nothing, &context()).await.unwrap(), 1);
    assert_eq!(copy.call(nothing, &context()).await.unwrap(), 1);
}
