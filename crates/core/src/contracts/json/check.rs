//! Checks that JSON text can be read as a value. A [`RawValue`](serde_json::value::RawValue) checks
//! less: it skips strings, numbers and nesting levels that no reader accepts.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::MAX_DEPTH;

/// Reads one value and discards it.
///
/// # Errors
/// Returns the parser's error, or an error if the value has more than [`MAX_DEPTH`] levels.
pub(super) fn reads_back(text: &str) -> serde_json::Result<()> {
    let mut parser = serde_json::Deserializer::from_str(text);
    Checked { left: MAX_DEPTH }.deserialize(&mut parser)?;
    parser.end()
}

/// A value with a remaining number of nesting levels.
#[derive(Clone, Copy)]
struct Checked {
    left: usize,
}

impl Checked {
    fn below<E: serde::de::Error>(self) -> Result<Self, E> {
        let left = self.left.checked_sub(1);
        let left = left.ok_or_else(|| E::custom(format_args!("more than {MAX_DEPTH} levels")))?;
        Ok(Self { left })
    }
}

impl<'de> DeserializeSeed<'de> for Checked {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let below = self.below()?;
        while items.next_element_seed(below)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let below = self.below()?;
        while members.next_entry_seed(below, below)?.is_some() {}
        Ok(())
    }
}
