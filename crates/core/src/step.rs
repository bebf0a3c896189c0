//! The step: what a model's answer means, as pure functions.

mod result;

pub use result::{ParsedSubAgentCall, ParsedToolCall, StepResult, StopReason};
