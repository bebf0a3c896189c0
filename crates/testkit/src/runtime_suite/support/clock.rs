//! Waiting for what nobody tells: looked for again and again, within the deadline of every wait.

use std::time::Duration;

use helix_agents_core::clock::Timestamp;

use super::S;
use crate::gate::within;
use crate::runtime_suite::RuntimeHarness;

/// How long to wait between two looks: a store may be a server.
const BETWEEN: Duration = Duration::from_millis(2);

/// Waits until it is so.
#[track_caller]
pub(in crate::runtime_suite) fn until(is_so: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
    within(async move {
        while !is_so().await {
            tokio::time::sleep(BETWEEN).await;
        }
    })
}

/// Waits until the clock of the store, which is the one that counts, has passed that moment.
pub(in crate::runtime_suite) async fn until_past(harness: &impl RuntimeHarness, moment: Timestamp) {
    let store = harness.store();
    until(async || store.head(&S.into()).await.unwrap().unwrap().read_at > moment).await;
}
