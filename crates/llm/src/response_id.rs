//! The provider's id of a reply, which the log keeps.

/// The length up to which an id is kept, in bytes. No provider uses longer ones.
const MAX_BYTES: usize = 256;

/// Returns the id to record, or `None` if the provider sent none or one that is too long.
pub(crate) fn recordable(id: &str) -> Option<String> {
    (1..=MAX_BYTES).contains(&id.len()).then(|| id.to_owned())
}
