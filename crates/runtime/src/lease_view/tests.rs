//! Lease expiry, and operations that wait for a renewal.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use helix_agents_core::clock::Clock as _;

use super::{LeaseMargin, LeaseView};
use crate::clock::TokioClock;

const SECOND: Duration = Duration::from_secs(1);

/// Returns ownership with a lease of six seconds that starts now, and the current time.
fn owned() -> (LeaseView, Duration) {
    let clock = TokioClock::new();
    let sent = clock.monotonic();
    (LeaseView::new(Arc::new(clock), 6 * SECOND, sent + 6 * SECOND), sent)
}

fn margins(ownership: &LeaseView) -> (bool, bool) {
    (ownership.has(LeaseMargin::Half), ownership.has(LeaseMargin::Third))
}

#[tokio::test(start_paused = true)]
async fn the_lease_counts_from_the_time_of_sending() {
    let (ownership, sent) = owned();
    tokio::time::advance(2 * SECOND).await;
    assert_eq!(margins(&ownership), (true, true));
    tokio::time::advance(SECOND).await;
    assert_eq!(margins(&ownership), (false, true));
    tokio::time::advance(SECOND).await;
    assert_eq!(margins(&ownership), (false, false));
    // The response arrives now, but acknowledges a request that was sent long ago.
    ownership.extend(sent + SECOND);
    assert_eq!(margins(&ownership), (false, true));
    ownership.extend(sent);
    assert_eq!(ownership.age(), 3 * SECOND, "an older acknowledgement changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_call_requests_a_renewal_and_waits_for_it() {
    let (ownership, sent) = owned();
    assert_eq!(ownership.wait_for_margin(LeaseMargin::Half).now_or_never(), Some(()));
    assert_eq!(ownership.renewal_requested().now_or_never(), None);
    tokio::time::advance(3 * SECOND).await;
    let mut waiting = pin!(ownership.wait_for_margin(LeaseMargin::Half));
    assert_eq!(waiting.as_mut().now_or_never(), None);
    assert_eq!(ownership.renewal_requested().now_or_never(), Some(()));
    ownership.extend(sent + 3 * SECOND);
    assert_eq!(waiting.now_or_never(), Some(()));
}

#[tokio::test(start_paused = true)]
async fn work_pauses_after_a_gap_until_the_lease_is_renewed() {
    let (ownership, sent) = owned();
    let mut work = pin!(ready(1));
    tokio::time::advance(4 * SECOND).await;
    assert_eq!(ownership.while_owned(work.as_mut()).now_or_never(), None);
    ownership.extend(sent + 4 * SECOND);
    assert_eq!(ownership.while_owned(work.as_mut()).now_or_never(), Some(1));
}
