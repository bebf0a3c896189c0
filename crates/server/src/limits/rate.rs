//! Rates of requests of each principal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Rate;

/// Limits the rate of requests of each principal (generic cell rate algorithm: one time for each principal).
#[derive(Debug)]
pub(crate) struct RateLimiter {
    /// The time that one request uses up.
    cost: Duration,
    /// The time that may be used up in advance.
    window: Duration,
    used: Mutex<Used>,
}

/// The times, by the monotonic clock, up to which principals have used up their allowance.
///
/// No time is more than a window ahead of the request that set it. Entries of the generation before the last one
/// therefore belong to idle principals, and are dropped together: a request costs the same however many principals
/// there are.
#[derive(Debug, Default)]
struct Used {
    /// The time at which the present generation began.
    since: Duration,
    present: HashMap<Arc<str>, Duration>,
    previous: HashMap<Arc<str>, Duration>,
}

impl Used {
    /// Starts a new generation if the present one is at least a window old.
    fn advance(&mut self, now: Duration, window: Duration) {
        if now.saturating_sub(self.since) >= window {
            self.previous = std::mem::take(&mut self.present);
            self.since = now;
        }
    }

    fn until(&self, principal: &str) -> Duration {
        let found = self.present.get(principal).or_else(|| self.previous.get(principal));
        found.copied().unwrap_or_default()
    }
}

impl RateLimiter {
    /// Creates a limiter. A rate of zero permits only the first burst of a principal.
    pub(crate) fn new(rate: Rate) -> Self {
        let cost = match rate.per_minute {
            0 => Duration::from_secs(u64::from(u32::MAX)),
            per_minute => Duration::from_secs(60) / per_minute,
        };
        Self { cost, window: cost * rate.burst.max(1), used: Mutex::default() }
    }

    /// Counts a request at this time.
    ///
    /// # Errors
    /// Returns the delay after which the request is permitted.
    pub(crate) fn check(&self, principal: &str, now: Duration) -> Result<(), Duration> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.advance(now, self.window);
        let until = used.until(principal).max(now) + self.cost;
        if until > now + self.window {
            return Err(until - now - self.window);
        }
        used.present.insert(principal.into(), until);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
