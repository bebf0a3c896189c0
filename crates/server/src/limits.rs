//! The limits of a server.

mod permits;
mod rate;

use std::time::Duration;

use helix_agents_protocols::RequestLimits;

pub(crate) use permits::{Permit, Permits};
pub(crate) use rate::RateLimiter;

/// The maximum of every duration: a year. Deadlines that are much further away cannot be represented.
const MAX_DURATION: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A rate at which a principal may send requests.
///
/// The allowance refills continuously. A principal that was idle may send `burst` requests at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rate {
    /// The number of requests for each minute.
    pub per_minute: u32,
    /// The number of requests that an idle principal may send at once. 0 counts as 1.
    pub burst: u32,
}

impl Rate {
    /// Creates a rate.
    #[must_use]
    pub const fn new(per_minute: u32, burst: u32) -> Self {
        Self { per_minute, burst }
    }
}

/// The limits of a server. A request beyond a limit is refused with 408, 413 or 429. A connection beyond a
/// limit waits.
/// Durations of more than a year count as a year.
///
/// Counts and rates are those of one server process. They protect the process. Set a quota for several instances
/// together in the proxy in front of them.
///
/// # Examples
/// ```
/// use helix_agents_server::{Limits, Rate};
///
/// let mut limits = Limits::default();
/// limits.body_bytes = 4 * 1024 * 1024;
/// limits.starts = Some(Rate::new(30, 5));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum size of a request's body. Default: 1 MiB.
    pub body_bytes: usize,
    /// The maximum size of a body of the chat and AG-UI routes, with which pages send their whole history. Default:
    /// 4 MiB.
    pub chat_body_bytes: usize,
    /// The maximum time in which a body arrives. Default: 30 s.
    pub body_timeout: Duration,
    /// The maximum time in which the head of a request arrives, for connections of
    /// [`serve`](crate::AgentServer::serve). Default: 10 s.
    pub head_timeout: Duration,
    /// The maximum time for which a client may read nothing although data waits for it. After that, the server ends the
    /// event stream, and [`serve`](crate::AgentServer::serve) closes the connection. Default: 60 s.
    pub stall_timeout: Duration,
    /// The maximum number of open connections of [`serve`](crate::AgentServer::serve). Default: 10,000.
    pub connections: usize,
    /// The maximum number of event streams. Default: 5,000.
    pub streams: usize,
    /// The maximum number of event streams of one principal. Default: 200.
    pub streams_per_principal: usize,
    /// The maximum number of requests in progress that change something. Such a request is completed even if its client
    /// disconnects. Default: 1,000.
    pub writes: usize,
    /// The maximum number of runs in progress that this server has started. Default: 1,000.
    pub runs: usize,
    /// The maximum number of such runs of one principal. Default: 100.
    pub runs_per_principal: usize,
    /// The maximum number of sessions that a principal owns. Default: no limit. Whenever a
    /// session is created, the check reads the principal's own sessions, up to the limit.
    pub sessions_per_principal: Option<usize>,
    /// The rate of requests of one principal. Default: 1,200 a minute, 200 at once.
    pub requests: Option<Rate>,
    /// The rate at which one principal starts and resumes runs. Default: 120 a minute, 30 at once.
    pub starts: Option<Rate>,
    /// The maximum time that a shutdown takes. Default: 25 s, which is less than the 30 s that orchestrators usually
    /// grant.
    pub shutdown: Duration,
}

impl Limits {
    /// Returns the limits of what the bodies of the chat and AG-UI routes contain.
    pub(crate) fn chat_request(&self) -> RequestLimits {
        let mut limits = RequestLimits::default();
        limits.body_bytes = self.chat_body_bytes;
        limits
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 1024 * 1024,
            chat_body_bytes: 4 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            head_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(60),
            connections: 10_000,
            streams: 5_000,
            streams_per_principal: 200,
            writes: 1_000,
            runs: 1_000,
            runs_per_principal: 100,
            sessions_per_principal: None,
            requests: Some(Rate::new(1_200, 200)),
            starts: Some(Rate::new(120, 30)),
            shutdown: Duration::from_secs(25),
        }
    }
}

impl Limits {
    /// Returns the limits with durations that can be added to the current time.
    pub(crate) fn bounded(mut self) -> Self {
        let Self { body_timeout, head_timeout, stall_timeout, shutdown, .. } = &mut self;
        for duration in [body_timeout, head_timeout, stall_timeout, shutdown] {
            *duration = bounded(*duration);
        }
        self
    }
}

/// Returns the duration, or [`MAX_DURATION`] if it is longer.
pub(crate) fn bounded(duration: Duration) -> Duration {
    duration.min(MAX_DURATION)
}

#[cfg(test)]
mod tests;
