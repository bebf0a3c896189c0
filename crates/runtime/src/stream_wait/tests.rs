//! What waits for streams, and for how long.

use std::future::{pending, ready};
use std::sync::Arc;

use helix_agents_core::clock::Clock as _;
use tokio::time::advance;

use super::{LIMIT, PAUSE, StreamWait};
use crate::clock::TokioClock;

#[tokio::test(start_paused = true)]
async fn streams_that_are_away_are_waited_for_once_in_a_while() {
    let clock = TokioClock::new();
    let wait = StreamWait::new(Arc::new(clock));
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
    let wait = StreamWait::new(Arc::new(TokioClock::new()));
    assert_eq!(wait.briefly(pending::<u8>()).await, None);
    assert_eq!(wait.last_chance(ready(1)).await, Some(1));
    wait.answered();
    assert_eq!(wait.briefly(ready(2)).await, Some(2));
}
