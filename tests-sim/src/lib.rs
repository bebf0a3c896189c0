//! Deterministic simulations: whole systems of processes, users, faults and one store, on one thread and a virtual
//! clock, determined by a seed.
//!
//! The code under test is the real one: runtime, engines, core and the store in memory. The simulated parts are behind
//! existing contracts: [`Clock`](helix_agents_core::clock::Clock), [`IdSource`](helix_agents_core::clock::IdSource),
//! the store, the streams, the model, and the work items of an engine.
//!
//! A [`Story`] is one simulation run. Its seed determines everything that happens. [`Story::run`] executes it:
//! processes start, act, stall beyond their leases, lose their network and crash. After the last fault every session
//! must end within a limit of simulated time. Each store operation is compared with a reference model, each append is
//! checked when it is written, and the final state is checked as a whole. Two executions of one seed must be identical.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod checked_store;
mod engine;
mod invariants;
mod many;
mod marks;
mod model;
mod moves;
mod mutants;
mod panics;
mod parameters;
mod plans;
mod process;
mod readers;
mod story;
mod time;
mod trace;
mod wire;
mod world;

pub use many::{Failure, Plan, Report, known_lines, parse_known, run_many, simplest, try_out};
pub use marks::{ALL_REACHED_AFTER, Mark, Marks};
pub use mutants::{HEAD, Hunted, hunt_all};
pub use parameters::{Fault, Story};
pub use story::Outcome;
