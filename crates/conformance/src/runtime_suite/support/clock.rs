//! Waits that poll, within the deadline of every wait.

use std::time::Duration;

use helix_agents_core::clock::Timestamp;
use helix_agents_test::within;

use super::S;
use crate::runtime_suite::RuntimeHarness;

/// The poll interval. The store may be a server.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Waits until the condition is true.
#[track_caller]
pub(in crate::runtime_suite) fn until(is_so: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
    within(async move {
        while !is_so().await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
}

/// Waits until the store's clock has passed that moment.
pub(in crate::runtime_suite) async fn until_past(harness: &impl RuntimeHarness, moment: Timestamp) {
    let store = harness.store();
    until(async || store.head(&S.into()).await.unwrap().unwrap().read_at > moment).await;
}
