//! What the model does for a request: by its path, and by the last tool result in it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use memchr::memmem;

use crate::job::{Ending, Work};

/// How many digits number a call; ids are as long as OpenAI's.
const DIGITS: usize = 19;

/// What a path asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    Work(Work),
    /// What was seen so far, as JSON.
    Seen,
    /// To forget what was seen.
    Forget,
}

/// What the model says next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    /// Call `add` for the step of this number.
    Add(u32),
    /// The final object, with this result.
    Object(u32, Ending),
    /// Text in chunks.
    Text { chunks: u32, per_write: u32 },
}

/// Reads a path.
pub(super) fn route(path: &str) -> Option<Route> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let first = parts.next()?;
    let mut number = || parts.next()?.parse::<u32>().ok();
    Some(match first {
        "seen" => Route::Seen,
        "forget" => Route::Forget,
        "text" => Route::Work(Work::Text { chunks: number()?, per_write: number()?.max(1) }),
        "tools" => {
            let (calls, delay_ms) = (number()?, number()?.into());
            let ending = match parts.next()? {
                "native" => Ending::Native,
                "finish" => Ending::Finish,
                _ => return None,
            };
            Route::Work(Work::Tools { calls, delay_ms, ending })
        }
        _ => return None,
    })
}

/// How long the model takes.
pub(super) fn delay(work: Work) -> Duration {
    match work {
        Work::Tools { delay_ms, .. } => Duration::from_millis(delay_ms),
        Work::Text { .. } | Work::Suspend => Duration::ZERO,
    }
}

/// What the model says after `results` tool results.
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

/// The id of the call in a step.
pub(super) fn call_id(step: u32) -> String {
    format!("call_{step:0DIGITS$}")
}

/// How many tool results a request holds. The id in the last one says so, and its content must be
/// what `add` gives for that step; nothing before it is read.
pub(super) fn results(body: &[u8]) -> Result<u32> {
    let Some(at) = memmem::rfind(body, b"\"role\":\"tool\"") else { return Ok(0) };
    let last = body.get(at..).unwrap_or_default();
    let step = digits(after(last, b"\"call_")?)?;
    let content = digits(after(last, b"\"content\":\"")?)?;
    ensure!(step == content, "the result of step {step} is {content}");
    Ok(step)
}

fn after<'a>(text: &'a [u8], mark: &[u8]) -> Result<&'a [u8]> {
    let at = memmem::find(text, mark).context("the last tool result is not as expected")?;
    Ok(text.get(at + mark.len()..).unwrap_or_default())
}

fn digits(text: &[u8]) -> Result<u32> {
    let end = text.iter().position(|it| !it.is_ascii_digit()).unwrap_or(text.len());
    let digits = std::str::from_utf8(text.get(..end).unwrap_or_default())?;
    digits.parse().context("no number where one was expected")
}
