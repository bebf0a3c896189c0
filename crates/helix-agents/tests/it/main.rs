//! The facade: what the README promises, and that every feature brings what it says.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod readme;
mod surface;
