//! Named fault points at every durable boundary, where a test may kill the process.
//!
//! Without a handler a fault point costs one atomic load. A worker process of a test sets the
//! handler once. The handler does not return from the point at which it kills the process.

use std::sync::OnceLock;

static HANDLER: OnceLock<fn(&'static str)> = OnceLock::new();

/// Sets the handler for fault points. Only the first call in a process has an effect. Returns
/// `true` if this was the first call.
pub fn set_handler(handler: fn(&'static str)) -> bool {
    HANDLER.set(handler).is_ok()
}

/// A fault point, where the process may crash.
#[inline]
pub fn point(name: &'static str) {
    if let Some(handler) = HANDLER.get() {
        handler(name);
    }
}
