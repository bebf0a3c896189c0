//! The facade: the README's example works, and every feature adds what its name says.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod guide;
mod media;
mod readme;
mod surface;
