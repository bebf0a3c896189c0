//! Runs one scenario of a suite with a deadline.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The time limit of a scenario. It is shorter than the limit of a test runner, so that a hang is reported
/// under the name of the scenario and not as a killed test binary.
pub const LIMIT: Duration = Duration::from_secs(180);

/// Runs a scenario on an executor of its own and waits for its end. The macros of the suites expand to this
/// call.
///
/// # Panics
/// If the scenario panics, and after [`LIMIT`], naming the scenario.
pub fn run<F>(name: &str, scenario: impl FnOnce() -> F + Send + 'static)
where
    F: Future<Output = ()>,
{
    run_within(LIMIT, name, scenario);
}

/// Runs a scenario like [`run`], with another time limit.
///
/// The scenario has a thread of its own, which is abandoned after the limit. So a scenario ends even if the
/// code under test blocks its thread.
///
/// # Panics
/// If the scenario panics, and after `limit`, naming the scenario.
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
