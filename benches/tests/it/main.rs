//! The benchmarks as a program: that they run, not how fast anything is.

mod smoke;
