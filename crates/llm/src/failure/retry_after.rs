//! The wait before a retry that a provider requests.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

#[cfg(test)]
mod tests;

/// Returns the wait that the headers request: `retry-after-ms`, or `retry-after` in seconds or as a
/// date.
pub(super) fn of_headers(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return seconds(milliseconds / 1000.0);
    }
    let asked = text(RETRY_AFTER.as_str())?;
    if let Ok(number) = asked.parse::<f64>() {
        return seconds(number);
    }
    // Both dates are from the provider's clock, so the local clock does not matter.
    between(text(DATE.as_str())?, asked)
}

/// Returns the wait that the text of an error requests: `try again in 1m3.5s`, or `"retryDelay":
/// "34.4s"`.
pub(super) fn of_body(body: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(body).ok()?;
    let after = |words: &str| text.split_once(words).map(|(_, rest)| rest);
    let rest = after("try again in ")
        .or_else(|| after("Try again in "))
        .or_else(|| after("retry after "))
        .or_else(|| Some(after("\"retryDelay\"")?.trim_start_matches([':', ' ', '"'])))?;
    spelled(rest)
}

fn between(now: &str, then: &str) -> Option<Duration> {
    let instant = |text| {
        let parser = jiff::fmt::rfc2822::DateTimeParser::new();
        parser.parse_timestamp(text).ok()
    };
    let wait = instant(then)?.duration_since(instant(now)?);
    Some(Duration::try_from(wait).unwrap_or(Duration::ZERO))
}

/// Parses `1m3.5s`, `20ms` or `2 seconds` at the start of a text.
fn spelled(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = None;
    while let Some((number, after)) = leading_number(rest) {
        let after = after.trim_start_matches(' ');
        let letters = after.find(|character: char| !character.is_ascii_alphabetic());
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let factor = match unit {
            "ms" | "milliseconds" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            _ => break,
        };
        total = Some(total.unwrap_or(0.0) + number * factor);
        rest = after;
    }
    seconds(total?)
}

fn leading_number(text: &str) -> Option<(f64, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.');
    let (number, rest) = text.split_at(end.unwrap_or(text.len()));
    // The full stop of a sentence is not part of its last number.
    Some((number.trim_end_matches('.').parse().ok()?, rest))
}

/// Negative, infinite and out-of-range waits are ignored.
fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}
