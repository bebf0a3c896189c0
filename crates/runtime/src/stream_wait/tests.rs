//! What waits for streams, and for how long.

use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Clock as _;
use tokio::time::advance;

use super::{LIMIT, PAUSE, StreamWait};
use crate::clock::TokioClock;

/// The lease of runs that wait.
const LEASE: Duration = Duration::from_secs(15);

#[tokio::test(start_paused = true)]
async fn streams_that_are_away_are_waited_for_once_in_a_while() {
    let clock = TokioClock::new();
    let wait = StreamWait::new(Arc::new(clock), LEASE);
    assert_eq!(wait.briefly(ready(1)).await, Some(1));
    let begun = clock.monotonic();
    for _ in 0..100 {
        assert_eq!(wait.briefly(pending::<u8>()).await, None);
    }
    assert_eq!(clock.monotonic() - begun, LIMIT, "one of a hundred waited");
    assert_eq!(wait.briefly(ready(2)).await, None, "nothing is asked meanwhile");
    advance(PAUSE).await;
    assert_eq!(wait.briefly(ready(3)).await, Some(3));
}

#[tokio::test(start_paused = true)]
async fn an_answer_ends_the_pause() {
    let wait = StreamWait::new(Arc::new(TokioClock::new()), LEASE);
    assert_eq!(wait.briefly(pending::<u8>()).await, None);
    assert_eq!(wait.last_chance(ready(1)).await, Some(1));
    wait.answered();
    assert_eq!(wait.briefly(ready(2)).await, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_wait_takes_a_small_part_of_a_short_lease() {
    let (clock, lease) = (TokioClock::new(), Duration::from_millis(400));
    let wait = StreamWait::new(Arc::new(clock), lease);
    let begun = clock.monotonic();
    assert_eq!(wait.briefly(pending::<u8>()).await, None);
    let waited = clock.monotonic() - begun;
    assert!(waited <= lease / 6, "it waited {waited:?} of a lease of {lease:?}");
}
