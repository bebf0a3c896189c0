//! The state machine: pure functions of the recorded events. It computes the state of a session, decides what happens
//! next, and applies the rules of streams. It contains no `async` code.

pub(crate) mod agent_result;
pub(crate) mod child_status;
pub(crate) mod result_message;
pub(crate) mod session;
pub(crate) mod start_events;
pub mod step;
pub(crate) mod stream;
