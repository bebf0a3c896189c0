//! Describes why a value does not deserialize as a type, without any content of the value: the
//! place, the kind of the value there, and what the type expects.

use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use crate::text::{MAX_QUOTED, excerpt_of};

/// The prefix of the names by which serde_json requests its own types.
const PRIVATE: &str = "$serde_json::private::";

/// Returns why `value` does not deserialize as `T`, in at most [`MAX_QUOTED`] bytes. Names of map
/// members are content too, and are written as `*`.
pub(crate) fn misfit<T: DeserializeOwned>(value: &Value) -> String {
    let misfit = match T::deserialize(Reader(value)) {
        Ok(_) => Misfit::refused(),
        Err(misfit) => misfit,
    };
    excerpt_of(misfit, MAX_QUOTED)
}

/// Returns the kind and length of a value.
pub(crate) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) if number.is_f64() => "a float".to_owned(),
        Value::Number(_) => "an integer".to_owned(),
        Value::String(text) => format!("a string of {} bytes", text.len()),
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(members) => format!("an object of {}", members.len()),
    }
}

/// The place where a value does not fit, innermost segment first, and the reason.
#[derive(Debug)]
struct Misfit {
    path: Vec<String>,
    problem: String,
}

impl Misfit {
    fn new(problem: String) -> Self {
        Self { path: Vec::new(), problem }
    }

    fn refused() -> Self {
        Self::new("its type rejects the value".to_owned())
    }

    fn below(mut self, segment: impl Into<String>) -> Self {
        self.path.push(segment.into());
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            f.write_str("at ")?;
            for segment in self.path.iter().rev() {
                write!(f, "/{segment}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    /// The type's own text is dropped, because it may quote the value.
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::refused()
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("{} where {expected} is expected", kind_of(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("{} is not {expected}", kind_of(found)))
    }

    fn invalid_length(len: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("a length of {len} where {expected} is expected"))
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("an unknown variant; the variants are {}", expected.join(", ")))
    }

    fn unknown_field(_: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("an unknown member; the members are {}", expected.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the member `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("the member `{field}` occurs twice"))
    }
}

fn kind_of(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(_) => "a boolean".to_owned(),
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer".to_owned(),
        Unexpected::Float(_) => "a float".to_owned(),
        Unexpected::Char(_) => "a string of one character".to_owned(),
        Unexpected::Str(text) => format!("a string of {} bytes", text.len()),
        Unexpected::Bytes(bytes) => format!("{} bytes", bytes.len()),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "an array".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        Unexpected::Enum
        | Unexpected::UnitVariant
        | Unexpected::NewtypeVariant
        | Unexpected::TupleVariant
        | Unexpected::StructVariant => "a variant".to_owned(),
        Unexpected::NewtypeStruct | Unexpected::Other(_) => "a value".to_owned(),
    }
}

/// A deserializer over a value that reports errors as [`Misfit`].
struct Reader<'a>(&'a Value);

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(*flag),
            Value::Number(number) => {
                if let Some(unsigned) = number.as_u64() {
                    visitor.visit_u64(unsigned)
                } else if let Some(signed) = number.as_i64() {
                    visitor.visit_i64(signed)
                } else {
                    visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN))
                }
            }
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => visitor.visit_seq(Items { items: items.iter(), index: 0 }),
            Value::Object(members) => visitor.visit_map(Members::of(members, &[])),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        if name.starts_with(PRIVATE) {
            let read = self.0.deserialize_newtype_struct(name, visitor);
            return read.map_err(|_| Misfit::refused());
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        match self.0 {
            _ if name.starts_with(PRIVATE) => {
                let read = self.0.deserialize_struct(name, fields, visitor);
                read.map_err(|_| Misfit::refused())
            }
            Value::Object(members) => visitor.visit_map(Members::of(members, fields)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let mut members = self.0.as_object().into_iter().flatten();
        let (variant, value) = match (self.0, members.next(), members.next()) {
            (Value::String(variant), ..) => (variant.as_str(), None),
            (_, Some((variant, value)), None) => (variant.as_str(), Some(value)),
            _ => {
                let expected = variants.join(", ");
                let found = kind(self.0);
                return Err(Misfit::new(format!(
                    "{found} where one variant of {expected} is expected"
                )));
            }
        };
        let known = variants.contains(&variant);
        let read = visitor.visit_enum(Variant { variant, value });
        read.map_err(|misfit| match value {
            Some(_) if known => misfit.below(variant),
            _ => misfit,
        })
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier
    }
}

struct Items<'a> {
    items: std::slice::Iter<'a, Value>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Misfit> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let index = self.index;
        self.index += 1;
        seed.deserialize(Reader(item)).map(Some).map_err(|misfit| misfit.below(index.to_string()))
    }
}

struct Members<'a> {
    members: serde_json::map::Iter<'a>,
    value: Option<(&'a str, &'a Value)>,
    /// The names that belong to the type and are not content.
    fields: &'static [&'static str],
}

impl<'a> Members<'a> {
    fn of(members: &'a Map<String, Value>, fields: &'static [&'static str]) -> Self {
        Self { members: members.iter(), value: None, fields }
    }
}

impl<'de> MapAccess<'de> for Members<'de> {
    type Error = Misfit;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Misfit> {
        let Some((name, value)) = self.members.next() else { return Ok(None) };
        self.value = Some((name, value));
        seed.deserialize(Name(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Misfit> {
        let Some((name, value)) = self.value.take() else { return Err(Misfit::refused()) };
        let segment = self.fields.iter().find(|field| **field == name).copied().unwrap_or("*");
        seed.deserialize(Reader(value)).map_err(|misfit| misfit.below(segment))
    }
}

/// The name of a member, which may represent a number or a boolean.
struct Name<'a>(&'a str);

macro_rules! parsed {
    ($($method:ident $visit:ident $type:ty;)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            match self.0.parse::<$type>() {
                Ok(parsed) => visitor.$visit(parsed),
                Err(_) => visitor.visit_borrowed_str(self.0),
            }
        }
    )+};
}

impl<'de> Deserializer<'de> for Name<'de> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        visitor.visit_enum(BorrowedStrDeserializer::new(self.0))
    }

    parsed! {
        deserialize_bool visit_bool bool;
        deserialize_i8 visit_i64 i64;
        deserialize_i16 visit_i64 i64;
        deserialize_i32 visit_i64 i64;
        deserialize_i64 visit_i64 i64;
        deserialize_i128 visit_i128 i128;
        deserialize_u8 visit_u64 u64;
        deserialize_u16 visit_u64 u64;
        deserialize_u32 visit_u64 u64;
        deserialize_u64 visit_u64 u64;
        deserialize_u128 visit_u128 u128;
        deserialize_f32 visit_f64 f64;
        deserialize_f64 visit_f64 f64;
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

/// An enum variant: the only member of an object, or a string.
struct Variant<'a> {
    variant: &'a str,
    value: Option<&'a Value>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Misfit;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Misfit> {
        Ok((seed.deserialize(Name(self.variant))?, self))
    }
}

impl<'de> Variant<'de> {
    fn content(self) -> Result<Reader<'de>, Misfit> {
        self.value
            .map(Reader)
            .ok_or_else(|| Misfit::new("a variant without its content".to_owned()))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Misfit;

    fn unit_variant(self) -> Result<(), Misfit> {
        self.value.map_or(Ok(()), |value| <() as de::Deserialize>::deserialize(Reader(value)))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Misfit> {
        seed.deserialize(self.content()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Misfit> {
        self.content()?.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        self.content()?.deserialize_struct("", fields, visitor)
    }
}

#[cfg(test)]
mod tests;
