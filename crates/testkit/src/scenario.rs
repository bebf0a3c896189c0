//! Runs one scenario of a suite, with a deadline.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The longest that a scenario may take. Shorter than the limit of a test runner, so that a hang is
/// reported under the scenario's name and not as a killed test binary.
pub const LIMIT: Duration = Duration::from_secs(180);

/// Runs a scenario on an executor of its own, and waits for its end. What the suites' macros expand to.
///
/// # Panics
/// If the scenario does, and after [`LIMIT`], naming the scenario.
pub fn run<F>(name: &str, scenario: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = ()>,
{
    run_within(LIMIT, name, scenario);
}

/// As [`run`], with another limit.
///
/// The scenario has a thread of its own, which is left behind when the time is up. So a scenario ends
/// even if the code under test blocks its thread.
///
/// # Panics
/// If the scenario does, and after `limit`, naming the scenario.
pub fn run_within<F>(limit: Duration, name: &str, scenario: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = ()>,
{
    let (ended, end) = channel::<()>();
    let body = move || {
        // Dropped at the end, after a panic too.
        let _ended = ended;
        let mut executor = tokio::runtime::Builder::new_multi_thread();
        executor.worker_threads(2).enable_all().build().unwrap().block_on(scenario());
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body).unwrap();
    if end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
        panic!("the scenario {name} did not end within {limit:?}");
    }
    if let Err(panic) = thread.join() {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests;
