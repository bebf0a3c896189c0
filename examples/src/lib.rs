//! The parts of the examples that other programs can use: a custom store and a custom agent loop. The examples themselves
//! are the programs in `src/bin`.

pub mod own_loop;
pub mod own_store;
