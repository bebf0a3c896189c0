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

fn margins(lease_view: &LeaseView) -> (bool, bool) {
    (lease_view.has(LeaseMargin::Half), lease_view.has(LeaseMargin::Third))
}

#[tokio::test(start_paused = true)]
async fn the_lease_counts_from_the_time_of_sending() {
    let (lease_view, sent) = owned();
    tokio::time::advance(2 * SECOND).await;
    assert_eq!(margins(&lease_view), (true, true));
    tokio::time::advance(SECOND).await;
    assert_eq!(margins(&lease_view), (false, true));
    tokio::time::advance(SECOND).await;
    assert_eq!(margins(&lease_view), (false, false));
    // The response arrives now, but acknowledges a request that was sent long ago.
    lease_view.extend(sent + SECOND);
    assert_eq!(margins(&lease_view), (false, true));
    lease_view.extend(sent);
    assert_eq!(lease_view.age(), 3 * SECOND, "an older acknowledgement changes nothing");
}

#[tokio::test(start_paused = true)]
async fn a_call_requests_a_renewal_and_waits_for_it() {
    let (lease_view, sent) = owned();
    assert_eq!(lease_view.wait_for_margin(LeaseMargin::Half).now_or_never(), Some(()));
    assert_eq!(lease_view.renewal_requested().now_or_never(), None);
    tokio::time::advance(3 * SECOND).await;
    let mut waiting = pin!(lease_view.wait_for_margin(LeaseMargin::Half));
    assert_eq!(waiting.as_mut().now_or_never(), None);
    assert_eq!(lease_view.renewal_requested().now_or_never(), Some(()));
    lease_view.extend(sent + 3 * SECOND);
    assert_eq!(waiting.now_or_never(), Some(()));
}

#[tokio::test(start_paused = true)]
async fn work_pauses_after_a_gap_until_the_lease_is_renewed() {
    let (lease_view, sent) = owned();
    let mut work = pin!(ready(1));
    tokio::time::advance(4 * SECOND).await;
    assert_eq!(lease_view.while_owned(work.as_mut()).now_or_never(), None);
    lease_view.extend(sent + 4 * SECOND);
    assert_eq!(lease_view.while_owned(work.as_mut()).now_or_never(), Some(1));
}
