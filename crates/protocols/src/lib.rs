//! Translators between Helix Agents and the protocols of front ends.
//!
//! * [`ai_sdk`]: the UI message stream of the AI SDK, which `useChat` reads.
//! * [`ag_ui`]: AG-UI 1.0.
//! * [`turn`]: a turn as a sequence of events, from the log, the stream, or both. All translators build on it.
//! * [`sse`]: the framing of server-sent events.
//!
//! The crate performs no I/O and has no `async` code. A server reads the log and the stream, and calls the translators.
//!
//! # Serving a session
//!
//! Every response to every client has the same form, whether it starts a run, joins it or comes back to it:
//!
//! 1. Read the session's page: the fold, the chunks of effects in progress, and the position after them.
//! 2. Begin the translator with the fold: it shows the recorded part of the turn.
//! 3. Add the chunks in progress, and then those that follow in the stream, until the translator is done.

pub mod ag_ui;
pub mod ai_sdk;
mod answer;
mod approval;
mod custom;
mod digest;
mod errors;
mod limits;
pub mod sse;
pub mod turn;
mod usage;

pub use answer::Answered;
pub use approval::ApprovalId;
pub use errors::{ErrorTexts, has_foreign_message};
pub use limits::RequestLimits;

#[cfg(test)]
mod testing;
