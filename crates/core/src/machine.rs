//! The state machine: pure functions of the recorded events. It computes the state of a session, decides what happens
//! next, and applies the rules of streams. It never waits.

pub mod agent_result;
pub mod child_status;
pub mod session;
pub mod start;
pub mod step;
pub mod stream;
