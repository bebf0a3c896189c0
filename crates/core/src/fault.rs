//! Named points at every durable boundary, where a test may end the process.
//!
//! Without a handler a point costs one load of an atomic. The handler is set once per process, by
//! a worker that a test started; it never returns from the point at which it kills.

use std::sync::OnceLock;

static HANDLER: OnceLock<fn(&'static str)> = OnceLock::new();

/// Sets what happens at fault points. Only the first call in a process counts; the answer says
/// whether it was this one.
pub fn set_handler(handler: fn(&'static str)) -> bool {
    HANDLER.set(handler).is_ok()
}

/// A place where the process may die.
#[inline]
pub fn point(name: &'static str) {
    if let Some(handler) = HANDLER.get() {
        handler(name);
    }
}
