//! AG-UI 1.0.
//!
//! * [`Translator`] translates a session's stream into [`Event`]s, for one response.
//! * [`history`] returns the messages of a session, as a snapshot contains them.
//! * [`RunAgentInput`] decodes the requests of clients.
//!
//! An AG-UI run is one response: it starts with the request and ends when the turn ends or has to wait. Several runs of
//! the session can take part in it, for example after a crash.
//!
//! A response starts with snapshots of the messages and of the state. The client keeps what it has and adds to it, so
//! nothing is ever sent twice: if something has to be taken back, new snapshots replace it.
//!
//! # Rules for servers
//!
//! * End the body only after [`Progress::Done`]. The client resolves a body that ends early without an error.
//! * On [`Progress::Reload`], read the session's page again, call [`Translator::reload`], and continue with the page's
//!   live chunks and the position after them, on the same connection.
//! * Do not write [`sse::DONE`](crate::sse::DONE), which the client does not accept.

mod assembler;
mod history;
mod message;
mod request;
mod translator;
mod wire;

pub use assembler::Assembler;
pub use history::history;
pub use message::{FunctionCall, Message, ToolCall, UserContent};
pub use request::{RunAgentInput, RunIntent};
pub use translator::{Options, Progress, Translator};
pub use wire::{Event, Interrupt, Outcome, SubAgentOutcome};

/// The version of the protocol.
pub const PROTOCOL_VERSION: &str = "1.0";

/// Returns the id of the message with the result of a call.
fn result_id(call: &str) -> String {
    format!("t-{call}")
}

#[cfg(test)]
mod tests;
