//! The statistics of the server.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::job::{Seen, SeenStep};

/// The maximum number of steps of a run.
const MAX_STEPS: usize = 1024;

/// The maximum number of timings per step.
const MAX_GAPS: usize = 100_000;

/// The statistics since the last reset.
#[derive(Debug, Default)]
pub(super) struct Stats(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    connections: u64,
    requests: u64,
    bad: u64,
    steps: Vec<Step>,
    /// The last reply: its number of results, and when it was ready. With sequential runs, the next
    /// request on any connection follows this reply.
    last: Option<(u32, Instant)>,
}

#[derive(Debug, Default, Clone)]
struct Step {
    body_bytes: u64,
    gaps: Vec<Duration>,
}

impl Stats {
    pub(super) fn connected(&self) {
        self.lock().connections += 1;
    }

    pub(super) fn refused(&self) {
        self.lock().bad += 1;
    }

    /// Records a request of a run, and the time since the preceding reply.
    pub(super) fn requested(&self, results: u32, body_bytes: usize, read: Instant) {
        let mut inner = self.lock();
        inner.requests += 1;
        let before = inner.last.take().filter(|(before, _)| before + 1 == results);
        let index = results as usize;
        if index >= MAX_STEPS {
            return;
        }
        if inner.steps.len() <= index {
            inner.steps.resize(index + 1, Step::default());
        }
        let Some(step) = inner.steps.get_mut(index) else { return };
        step.body_bytes = body_bytes as u64;
        if let Some((_, answered)) = before
            && step.gaps.len() < MAX_GAPS
        {
            step.gaps.push(read.saturating_duration_since(answered));
        }
    }

    /// Records that the reply after this many results is ready to be written.
    pub(super) fn answers(&self, results: u32) {
        self.lock().last = Some((results, Instant::now()));
    }

    pub(super) fn seen(&self) -> Seen {
        let inner = self.lock();
        let (connections, requests, bad) = (inner.connections, inner.requests, inner.bad);
        Seen { connections, requests, bad, steps: inner.steps.iter().map(Step::seen).collect() }
    }

    pub(super) fn forget(&self) {
        *self.lock() = Inner::default();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Step {
    fn seen(&self) -> SeenStep {
        let mut gaps = self.gaps.clone();
        gaps.sort_unstable();
        let ns = |at: usize| gaps.get(at).map_or(0, |gap| gap.as_nanos() as u64);
        SeenStep {
            body_bytes: self.body_bytes,
            gap_ns_min: ns(0),
            gap_ns_median: ns(gaps.len() / 2),
        }
    }
}
