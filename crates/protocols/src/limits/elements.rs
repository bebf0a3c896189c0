//! Reading of JSON arrays and objects one element at a time, so that a limit applies before memory is used.

use std::fmt;

use helix_agents_core::error::{Error, Result};
use serde::Deserializer as _;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{check, malformed};

/// Calls `take` with each element of an array, without storing the elements. An absent array has none. Stops at the first
/// error, and at an element beyond the limit.
pub(crate) fn each<'b>(
    array: Option<&'b RawValue>,
    what: &'static str,
    limit: usize,
    mut take: impl FnMut(&'b RawValue) -> Result<()>,
) -> Result<()> {
    let Some(array) = array else { return Ok(()) };
    let mut count = 0;
    let mut failure = None;
    let visitor = Elements {
        failure: &mut failure,
        take: |_, element| {
            count += 1;
            check(what, count, limit)?;
            take(element)
        },
    };
    let parsed = serde_json::Deserializer::from_str(array.get()).deserialize_seq(visitor);
    finished(failure, parsed)
}

/// Calls `take` with each member of an object, without storing the members. Stops at the first error.
pub(crate) fn members<'b>(
    object: &'b [u8],
    take: impl FnMut(String, &'b RawValue) -> Result<()>,
) -> Result<()> {
    let mut failure = None;
    let visitor = Elements { failure: &mut failure, take };
    let mut deserializer = serde_json::Deserializer::from_slice(object);
    let parsed = deserializer.deserialize_map(visitor).and_then(|()| deserializer.end());
    finished(failure, parsed)
}

fn finished(failure: Option<Error>, parsed: serde_json::Result<()>) -> Result<()> {
    match failure {
        Some(error) => Err(error),
        None => parsed.map_err(|error| malformed(&error)),
    }
}

struct Elements<'f, F> {
    take: F,
    /// The error of `take`, because serde's errors only have a text.
    failure: &'f mut Option<Error>,
}

impl<F> Elements<'_, F> {
    fn take<'b, E: serde::de::Error>(
        &mut self,
        name: String,
        element: &'b RawValue,
    ) -> Result<(), E>
    where
        F: FnMut(String, &'b RawValue) -> Result<()>,
    {
        (self.take)(name, element).map_err(|error| {
            *self.failure = Some(error);
            E::custom("refused")
        })
    }
}

impl<'b, F: FnMut(String, &'b RawValue) -> Result<()>> Visitor<'b> for Elements<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object of this protocol")
    }

    fn visit_seq<A: SeqAccess<'b>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            self.take(String::new(), element)?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'b>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some((name, member)) = members.next_entry()? {
            self.take(name, member)?;
        }
        Ok(())
    }
}
