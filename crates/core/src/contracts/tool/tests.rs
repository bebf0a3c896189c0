//! Tests of tool contexts and of the values that tools return.

mod context;
mod returns;
