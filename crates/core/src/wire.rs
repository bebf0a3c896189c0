//! A place beside an immutable value for the bytes that a provider adapter made of it.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

/// Keeps the first encoding of the value beside it.
#[derive(Default)]
pub(crate) struct WireCell(OnceLock<(&'static str, Box<[u8]>)>);

impl WireCell {
    /// The bytes in `encoding`, made by `encode` the first time. A second encoding of the same
    /// value is made anew each time: it occurs only when a session changes its provider.
    pub(crate) fn get(
        &self,
        encoding: &'static str,
        encode: impl Fn(&mut Vec<u8>),
    ) -> Cow<'_, [u8]> {
        let fresh = || {
            let mut bytes = Vec::new();
            encode(&mut bytes);
            bytes
        };
        let (kept, bytes) = self.0.get_or_init(|| (encoding, fresh().into_boxed_slice()));
        if *kept == encoding { Cow::Borrowed(bytes) } else { Cow::Owned(fresh()) }
    }
}

impl fmt::Debug for WireCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WireCell").field(&self.0.get().map(|(encoding, _)| encoding)).finish()
    }
}
