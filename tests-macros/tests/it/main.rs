//! Mistakes in the use of the attribute macros.

mod compile_errors;
