//! Tests of the journal.

mod conflict;
mod durability;
mod faults;
mod large;
mod start;
