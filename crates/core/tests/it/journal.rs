//! Writing a log through a journal.

mod conflict;
mod durability;
mod faults;
mod large;
mod start;
