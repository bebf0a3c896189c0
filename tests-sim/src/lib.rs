//! Deterministic simulations: whole worlds of processes, users, faults and one store, on one thread and
//! a clock that never waits, by seed.
//!
//! The code under test is the real one: runtime, engines, core and the store in memory. What is
//! simulated lies behind the seams that they have anyway: [`Clock`](helix_agents_core::clock::Clock),
//! [`IdSource`](helix_agents_core::clock::IdSource), the store, the streams, the model, and the parts of
//! an engine.
//!
//! A [`Story`] is all that a seed decides. [`Story::tell`] tells it: processes come, act, stand still
//! for longer than their leases, lose their network and die, and after the last fault everything has to
//! come to its end within a limit of simulated time. Each operation of the store is compared with a
//! reference model, each append is checked as it is made, and what is left in the end is checked as a
//! whole. Two tellings of one seed must agree in everything.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod always;
mod answer;
mod engine;
mod knobs;
mod many;
mod marks;
mod model;
mod moves;
mod mutants;
mod panics;
mod plans;
mod process;
mod readers;
mod story;
mod time;
mod trace;
mod wire;
mod witness;
mod world;

pub use knobs::{Fault, Story};
pub use many::{Failure, Plan, Report, known_lines, parse_known, simplest, tell_many, try_out};
pub use marks::{Mark, Marks};
pub use mutants::{ENOUGH, HEAD, Hunted, hunt_all};
pub use story::Told;
