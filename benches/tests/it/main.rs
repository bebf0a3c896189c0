//! Tests that the benchmarks run, not how fast anything is.

mod smoke;
