//! The UI message stream of the AI SDK, version 1, which `useChat` reads.
//!
//! * [`Translator`] translates a session's stream into [`UiChunk`]s, for one response.
//! * [`history`] returns the messages of a session as [`UiMessage`]s, for a page that opens it.
//! * [`ChatRequest`] decodes the requests of `useChat`.
//!
//! A turn is one assistant message, whose id [`message_id`] returns. It keeps the id in all responses and in the
//! history, so that the page never shows a turn twice.
//!
//! # Major versions
//!
//! [`Major::Seven`] of the package `ai` is the default. Requests do not name the version, so a server has to be
//! configured for [`Major::Six`], which does not know some chunks. If a model call is repeated after a crash, the text
//! of the discarded attempt stays in the message until the page is reloaded.
//!
//! # Rules for servers
//!
//! * End the body only after [`Progress::Done`], and write [`sse::DONE`](crate::sse::DONE) then. A body that ends
//!   without an error counts as complete.
//! * Break the connection on [`Progress::Broken`], or if the stream fails. The page then resumes.
//! * `stop()` in the page only closes the connection. Never stop a run because a connection ended.

mod assembler;
mod continuation;
mod history;
mod ids;
mod message;
mod request;
mod translator;
mod wire;

pub use assembler::{Assembler, ProtocolViolation};
pub use continuation::Seen;
pub use history::{history, history_of_turn};
pub use ids::{message_id, turn_of_message};
pub use message::{DataPart, PartState, Role, TextPart, ToolApproval, ToolPart, UiMessage, UiPart};
pub use request::{ChatIntent, ChatRequest, Trigger};
pub use translator::{Options, Progress, Translator};
pub use wire::{FinishReason, UiChunk};

/// A major version of the package `ai`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Major {
    /// Version 6.
    Six,
    /// Version 7.
    #[default]
    Seven,
}

/// The header that marks a response as a UI message stream of version 1.
pub const STREAM_HEADER: (&str, &str) = ("x-vercel-ai-ui-message-stream", "v1");

#[cfg(test)]
mod tests;
