//! Tests of the deadline.

use std::panic::catch_unwind;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::{run, run_within};

const SHORT: Duration = Duration::from_millis(50);

/// The message of the panic by which a scenario fails.
fn failure(test: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = catch_unwind(test).unwrap_err();
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap()
}

#[test]
fn a_scenario_that_ends_passes() {
    run("ends", async || tokio::task::yield_now().await);
}

#[test]
fn a_scenario_that_panics_fails_with_its_own_message() {
    let failed = || run("panics", async || panic!("its own message"));
    assert_eq!(failure(failed), "its own message");
}

#[test]
fn a_scenario_that_loops_fails_under_its_name() {
    let looping = async || {
        loop {
            tokio::task::yield_now().await;
        }
    };
    let failed = || run_within(SHORT, "loops", looping);
    assert_eq!(failure(failed), "the scenario loops did not end within 50ms");
}

#[test]
fn a_scenario_that_blocks_its_thread_fails_under_its_name() {
    let (hold, held) = channel::<()>();
    let blocking = async move || assert!(held.recv().is_err());
    let failed = std::panic::AssertUnwindSafe(|| run_within(SHORT, "blocks", blocking));
    assert_eq!(failure(failed), "the scenario blocks did not end within 50ms");
    drop(hold);
}
