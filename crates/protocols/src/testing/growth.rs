//! Measures how the cost of work grows with its size.

use std::fs;
use std::time::{Duration, Instant};

/// The number of attempts.
const ATTEMPTS: usize = 5;

/// Checks that the cost of `work` is in proportion to its size. `prepare` is not measured.
///
/// For eight times the size, the cost is about eight times as high if it is linear, and up to 64 times as high if it is
/// quadratic. One of several attempts must show it, because other processes use the same caches.
pub(crate) fn assert_linear<T>(size: u32, prepare: impl Fn(u32) -> T, work: impl Fn(T)) {
    let cost = |size| {
        let prepared = prepare(size);
        let before = cpu_time();
        work(prepared);
        cpu_time().saturating_sub(before)
    };
    let mut costs = Vec::new();
    while costs.len() < ATTEMPTS {
        let (small, large) = (cost(size), cost(8 * size));
        if large < 13 * small {
            return;
        }
        costs.push((small, large));
    }
    panic!("the costs for {size}, and for eight times as many: {costs:?}");
}

/// Returns the time that this thread has been running. It does not depend on the load of the machine, unless the system
/// has no such clock.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let running = stat.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok());
    running.map_or_else(|| wall_time().elapsed(), Duration::from_nanos)
}

fn wall_time() -> Instant {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}
