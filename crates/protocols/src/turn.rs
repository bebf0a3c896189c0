//! A turn as a sequence of events, from a session's log, from its stream, or from both.
//!
//! The protocols of front ends show a turn as one message that grows. A client sees the same turn in three ways: live,
//! as a replay after it reconnected, and in the history. All three take the same path, so that they build the same
//! message:
//!
//! ```text
//! fold ── replay() ──▶ chunks ─┐
//!                              ├──▶ TurnReader ──▶ TurnEvents ──▶ translator of a protocol
//! stream ────────────▶ chunks ─┘
//! ```
//!
//! [`replay`] returns the chunks that a stream would have shown for the recorded part of a turn, in whole parts. Its
//! cost depends on the number of steps and calls of the turn, never on the number of deltas. [`TurnReader`] classifies
//! chunks: it separates the root session from its sub-agents, assigns ids to calls, and turns discarded attempts into
//! resets of a step.

mod drafts;
mod event;
mod folds;
mod reader;
mod record;
mod replay;
mod sub_agents;

pub use event::{Executor, RunEnd, TurnEvent};
pub use folds::Folds;
pub(crate) use folds::is_of_sub_agent;
pub use reader::TurnReader;
pub use record::turns;
pub(crate) use record::{TurnRecord, user_messages};
pub use replay::replay;
pub(crate) use replay::replay_record;
pub use sub_agents::{SubAgent, SubAgentStatus};

#[cfg(test)]
mod tests;
