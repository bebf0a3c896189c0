//! The facade: what the README promises, and that every feature brings what it says.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod guide;
mod readme;
mod surface;
