//! The facade: the README's example works, every feature adds what its name says, and the attributes expand to tools.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod guide;
#[cfg(feature = "macros")]
mod macros;
mod media;
mod readme;
mod surface;
