//! Digests of requests, from which ids derive that are the same for a repeated request.

use sha2::{Digest as _, Sha256};

/// Returns a digest of texts as hexadecimal digits. The lengths are part of it, so that no two lists have the same one.
pub(crate) fn digest<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update(text.len().to_le_bytes());
        hash.update(text);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
