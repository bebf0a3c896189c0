//! The validator behind a schema. It is the only part that needs the feature `json-schema`, because
//! its implementation has more dependencies than the rest of the crate.

#[cfg(feature = "json-schema")]
mod compiled;
#[cfg(not(feature = "json-schema"))]
mod disabled;

#[cfg(feature = "json-schema")]
pub(super) use compiled::Validator;
#[cfg(not(feature = "json-schema"))]
pub(super) use disabled::Validator;
