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
async fn a_timer_that_an_earlier_wait_started_shortens_a_wait_by_at_most_a_slice() {
    let clock = TokioClock::new();
    for early in [Duration::ZERO, LIMIT / 8, LIMIT / 3, LIMIT * 100] {
        let wait = StreamWait::new(Arc::new(clock), LEASE);
        // The wait ends early and leaves its timer running.
        assert_eq!(wait.wait_once(yield_now()).await, Some(()));
        advance(early).await;
        let started = clock.monotonic();
        assert_eq!(wait.wait_if_available(pending::<u8>()).await, None);
        let waited = clock.monotonic() - started;
        assert!(waited <= LIMIT && waited >= LIMIT - LIMIT / SLICES, "{waited:?} after {early:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_waits_have_timers_of_their_own() {
    let clock = TokioClock::new();
    let wait = StreamWait::new(Arc::new(clock), LEASE);
    let started = clock.monotonic();
    let other = wait.with_own_timer();
    let both = join(wait.wait_once(pending::<u8>()), wait.wait_once(pending::<u8>()));
    assert_eq!(join(both, other.wait_once(pending::<u8>())).await, ((None, None), None));
    assert_eq!(clock.monotonic() - started, LIMIT);
}
