//! Waits for streams and their limits.

use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use helix_agents_core::clock::Clock as _;
use tokio::task::yield_now;
use tokio::time::advance;

use super::{LIMIT, PAUSE, SLICES, StreamWait};
use crate::clock::TokioClock;

/// The lease duration of the waiting runs.
const LEASE: Duration = Duration::from_secs(15);

#[tokio::test(start_paused = true)]
async fn unavailable_streams_delay_runs_only_occasionally() {
    let clock = TokioClock::new();
    let wait = StreamWait::new(Arc::new(clock), LEASE);
    assert_eq!(wait.wait_if_available(ready(1)).await, Some(1));
    let started = clock.monotonic();
    for _ in 0..100 {
        assert_eq!(wait.wait_if_available(pending::<u8>()).await, None);
    }
    assert_eq!(clock.monotonic() - started, LIMIT, "only one of a hundred calls waited");
    assert_eq!(
        wait.wait_if_available(ready(2)).await,
        None,
        "streams are not queried during the pause"
    );
    advance(PAUSE).await;
    assert_eq!(wait.wait_if_available(ready(3)).await, Some(3));
}

#[tokio::test(start_paused = true)]
async fn an_answer_ends_the_pause() {
    let wait = StreamWait::new(Arc::new(TokioClock::new()), LEASE);
    assert_eq!(wait.wait_if_available(pending::<u8>()).await, None);
    assert_eq!(wait.wait_once(ready(1)).await, Some(1));
    wait.answered();
    assert_eq!(wait.wait_if_available(ready(2)).await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_wait_uses_a_small_fraction_of_a_short_lease() {
    let (clock, lease) = (TokioClock::new(), Duration::from_millis(400));
    let wait = StreamWait::new(Arc::new(clock), lease);
    let started = clock.monotonic();
    assert_eq!(wait.wait_if_available(pending::<u8>()).await, None);
    let waited = clock.monotonic() - started;
    assert!(waited <= lease / 6, "it waited {waited:?} of a lease of {lease:?}");
}

#[tokio::test(start_paused = true)]
async fn waits_of_a_run_reuse_one_timer() {
    let clock = TokioClock::new();
    for early in [LIMIT / 8, LIMIT / 5, LIMIT * 100] {
        let wait = StreamWait::new(Arc::new(clock), LEASE).with_timer();
        // The wait ends early and leaves its timer running.
        assert_eq!(wait.wait_once(yield_now()).await, Some(()));
        advance(early).await;
        let started = clock.monotonic();
        assert_eq!(wait.wait_if_available(pending::<u8>()).await, None);
        let first_slice = (LIMIT / SLICES).saturating_sub(early);
        let others = LIMIT / SLICES * (SLICES - 1);
        assert_eq!(clock.monotonic() - started, first_slice + others, "after {early:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_waits_of_a_run_all_last_as_long_as_the_limit() {
    let clock = TokioClock::new();
    let wait = StreamWait::new(Arc::new(clock), LEASE).with_timer();
    let started = clock.monotonic();
    let both = join(wait.wait_once(pending::<u8>()), wait.wait_once(pending::<u8>())).await;
    assert_eq!(both, (None, None));
    assert_eq!(clock.monotonic() - started, LIMIT);
}
