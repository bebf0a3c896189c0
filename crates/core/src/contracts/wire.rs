//! A cache for the bytes into which a provider adapter encodes an immutable value.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

/// The initial capacity of a buffer. Most messages fit, so encoding them does not reallocate it.
const TYPICAL_BYTES: usize = 512;

/// Caches the first encoding of a value.
#[derive(Default)]
pub(crate) struct WireCell(OnceLock<(&'static str, Box<[u8]>)>);

impl WireCell {
    /// Returns the value encoded as `encoding`. The first call runs `encode`; later calls use the
    /// cached bytes. A second encoding of the same value is not cached, because it only occurs when
    /// a session changes its provider.
    pub(crate) fn get(
        &self,
        encoding: &'static str,
        encode: impl Fn(&mut Vec<u8>),
    ) -> Cow<'_, [u8]> {
        let fresh = || {
            let mut bytes = Vec::with_capacity(TYPICAL_BYTES);
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
