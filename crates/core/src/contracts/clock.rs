//! Clocks and id sources. They are injected, so that decisions are reproducible and tests control
//! both.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::id::{AppendId, BatchId, RequestId, RunId, SessionId};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Returns the time `duration` later, capped at the maximum value.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the time elapsed since `earlier`, or zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

/// Formats a duration for users, as `340 ms`, `4.2 s` or `2 min 05 s`.
#[must_use]
pub fn short_duration(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.as_millis());
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{}.{} s", seconds, duration.subsec_millis() / 100),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// A process's clock, for waits and measurements. Leases and deadlines are compared with the
/// store's clock, never with a process's clock.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the wall-clock time, for display and measurements only.
    fn now(&self) -> Timestamp;

    /// Returns the time since a fixed point. It never jumps.
    fn monotonic(&self) -> Duration;

    /// Waits for `duration`.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait without side effects.
    async fn sleep(&self, duration: Duration);
}

/// A source of unique ids.
pub trait IdSource: fmt::Debug + Send + Sync + 'static {
    /// Returns a number that no other call, in any process, returns. Time-ordered numbers keep
    /// database indexes compact.
    fn next(&self) -> u128;
}

/// Formats an id as an optional prefix of four characters and 32 hexadecimal digits. Written by
/// hand, because ids are created in every step and the standard formatter is slower than the id
/// source.
fn hexadecimal<T: for<'a> From<&'a str>>(name: &str, number: u128) -> T {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or_default();
    let mut text = [0; 36];
    let (front, digits) = text.split_at_mut(name.len().min(4));
    for (place, letter) in front.iter_mut().zip(name.bytes()) {
        *place = letter;
    }
    for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
    }
    let length = name.len() + 32;
    let text = text.get(..length).and_then(|text| std::str::from_utf8(text).ok());
    T::from(text.unwrap_or_default())
}

/// The ids of each kind, for every [`IdSource`].
pub trait IdSourceExt: IdSource {
    /// Creates a session id.
    #[must_use]
    fn session(&self) -> SessionId {
        hexadecimal("ses_", self.next())
    }

    /// Creates a run id.
    #[must_use]
    fn run(&self) -> RunId {
        hexadecimal("run_", self.next())
    }

    /// Creates an append id.
    #[must_use]
    fn append(&self) -> AppendId {
        hexadecimal("", self.next())
    }

    /// Creates a batch id.
    #[must_use]
    fn batch(&self) -> BatchId {
        BatchId(self.next())
    }

    /// Creates a request id.
    #[must_use]
    fn request(&self) -> RequestId {
        hexadecimal("req_", self.next())
    }
}

impl<T: IdSource + ?Sized> IdSourceExt for T {}

#[cfg(test)]
mod tests;
