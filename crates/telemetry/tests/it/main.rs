//! Tests of the spans of real runs, and of their export.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod clock;
mod content;
mod export;
mod langfuse;
mod metrics;
#[cfg(feature = "tracing")]
mod own_spans;
mod per_step;
mod receiver;
mod sampling;
mod support;
mod turns;
