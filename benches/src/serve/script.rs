//! The model's replies, which depend on the path and the last tool result of a request.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use memchr::memmem;

use crate::job::{Ending, Format, Work};

/// The number of digits in a call id, whose length matches OpenAI's.
const DIGITS: usize = 19;

/// The meaning of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// Returns the next reply of a run, in this wire format.
    Work(Format, Work),
    /// Returns the statistics as JSON.
    Seen,
    /// Resets the statistics.
    Forget,
}

/// The model's next reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    /// A call of `add` for the step with this number.
    Add(u32),
    /// The final object with this result.
    Object(u32, Ending),
    /// A text in chunks.
    Text { chunks: u32, per_write: u32 },
}

/// The texts that mark a tool result in a request of a wire format. The id of its call and then its content follow.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    pub(super) result: &'static str,
    pub(super) content: &'static str,
}

/// Parses a path. The segments after the work are those of the wire format.
pub(super) fn route(path: &str) -> Option<Route> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let first = parts.next()?;
    let mut number = || parts.next()?.parse::<u32>().ok();
    let work = match first {
        "seen" => return Some(Route::Seen),
        "forget" => return Some(Route::Forget),
        "text" => Work::Text { chunks: number()?, per_write: number()?.max(1) },
        "tools" => {
            let (calls, delay_ms) = (number()?, number()?.into());
            let ending = match parts.next()? {
                "native" => Ending::Native,
                "finish" => Ending::Finish,
                _ => return None,
            };
            Work::Tools { calls, delay_ms, ending }
        }
        _ => return None,
    };
    let format = parts.next().filter(|version| *version == "v1").and_then(|_| parts.next())?;
    Some(Route::Work(Format::of_path(format)?, work))
}

/// Returns the time that the model takes.
pub(super) fn delay(work: Work) -> Duration {
    match work {
        Work::Tools { delay_ms, .. } => Duration::from_millis(delay_ms),
        Work::Text { .. } | Work::Suspend => Duration::ZERO,
    }
}

/// Returns the model's reply after `results` tool results.
pub(super) fn next(work: Work, results: u32) -> Result<Say> {
    match work {
        Work::Text { chunks, per_write } => Ok(Say::Text { chunks, per_write }),
        Work::Suspend => Ok(Say::Add(1)),
        Work::Tools { calls, .. } if results < calls => Ok(Say::Add(results + 1)),
        Work::Tools { calls, ending, .. } => {
            ensure!(results == calls, "{results} results for {calls} calls");
            Ok(Say::Object(calls, ending))
        }
    }
}

/// Returns the id of the call in a step.
pub(super) fn call_id(step: u32) -> String {
    format!("call_{step:0DIGITS$}")
}

/// Returns the number of tool results in a request. It is part of the last result's id. The content
/// of that result must be the value of `add` for its step. Earlier messages are not read.
pub(super) fn results(body: &[u8], marks: Marks) -> Result<u32> {
    let Some(at) = memmem::rfind(body, marks.result.as_bytes()) else { return Ok(0) };
    let last = body.get(at..).unwrap_or_default();
    let step = digits(after(last, b":\"call_")?)?;
    let content = digits(after(last, marks.content.as_bytes())?)?;
    ensure!(step == content, "the result of step {step} is {content}");
    Ok(step)
}

fn after<'a>(text: &'a [u8], mark: &[u8]) -> Result<&'a [u8]> {
    let at = memmem::find(text, mark).context("the last tool result is malformed")?;
    Ok(text.get(at + mark.len()..).unwrap_or_default())
}

fn digits(text: &[u8]) -> Result<u32> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let digits = std::str::from_utf8(text.get(..end).unwrap_or_default())?;
    digits.parse().context("a number was expected")
}
