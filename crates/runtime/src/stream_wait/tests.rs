//! Waits for streams and their limits.

use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Clock as _;
use tokio::time::advance;

use super::{LIMIT, PAUSE, StreamWait};
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
