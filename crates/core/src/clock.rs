//! Time and fresh ids, which come in from outside so that decisions stay repeatable and tests
//! decide both.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::id::{AppendId, RequestId, RunId, SessionId};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// This point plus `duration`, held at the largest value.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// From `earlier` to this point; zero if it lies later.
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

/// A process's clock. It times waits and measures durations; what is compared with leases and
/// deadlines is the store's clock, never this one.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The wall clock, for display and measurements only.
    fn now(&self) -> Timestamp;

    /// Time since some fixed point that never jumps.
    fn monotonic(&self) -> Duration;

    /// Returns after `duration`.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait; nothing is lost.
    async fn sleep(&self, duration: Duration);
}

/// Where fresh ids come from.
pub trait IdSource: fmt::Debug + Send + Sync + 'static {
    /// A number that no other call, in any process, returns. Time-ordered sources keep database
    /// indexes compact.
    fn next(&self) -> u128;
}

/// A name in front of 32 hexadecimal digits. Ids are made in every step, and the formatter costs
/// more than the number.
fn hexadecimal(name: &str, number: u128) -> String {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let bytes = number.to_be_bytes();
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let digits = digits.map(|digit| DIGITS.get(usize::from(digit)).copied().unwrap_or_default());
    let mut text = String::with_capacity(name.len() + 32);
    text.push_str(name);
    text.extend(digits.map(char::from));
    text
}

impl dyn IdSource {
    /// A fresh session id.
    #[must_use]
    pub fn session(&self) -> SessionId {
        SessionId::from(hexadecimal("ses_", self.next()))
    }

    /// A fresh run id.
    #[must_use]
    pub fn run(&self) -> RunId {
        RunId::from(hexadecimal("run_", self.next()))
    }

    /// A fresh append id.
    #[must_use]
    pub fn append(&self) -> AppendId {
        AppendId::from(hexadecimal("", self.next()))
    }

    /// A fresh request id.
    #[must_use]
    pub fn request(&self) -> RequestId {
        RequestId::from(hexadecimal("req_", self.next()))
    }
}

#[cfg(test)]
mod tests;
