//! Collects all problems with a use of the attribute, so that they are reported together.

use proc_macro2::Span;
use quote::ToTokens;
use syn::{Error, Result};

/// A list of compile errors; empty if there are no problems.
#[derive(Default)]
pub(crate) struct Problems(Option<Error>);

impl Problems {
    /// Adds a problem at these tokens.
    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: &str) {
        self.add(Error::new_spanned(tokens, message));
    }

    /// Adds a problem.
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Returns the value of a result, or adds its error and returns `None`.
    pub(crate) fn take<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    /// Returns the value if there are no problems; otherwise all problems as one error.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T> {
        match (self.0, value) {
            (None, Some(value)) => Ok(value),
            (Some(error), _) => Err(error),
            (None, None) => Err(Error::new(Span::call_site(), "this cannot be a tool")),
        }
    }
}
