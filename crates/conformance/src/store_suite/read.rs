//! Scenarios for reading logs in parts.

use futures_util::FutureExt as _;
use helix_agents_core::store::Append;
use helix_agents_test::within;

use super::StoreHarness;
use super::support::{Writer, assert_gapless};

/// A log that is read in parts of any size has the same appends as a log that is read at once. No part has more than
/// the requested number of appends.
pub async fn a_log_can_be_read_in_parts(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    for number in 0..23_u32 {
        let next = Append { count: 1 + number % 3, ..writer.next(&format!("a{number}")) };
        writer.take(next).await;
    }
    let log = writer.log().await;
    for limit in [1, 5, 24, 25, 1000] {
        let mut parts = Vec::new();
        let mut after = 0;
        loop {
            let part = store.read_log(&writer.session, after, limit).await.unwrap();
            assert!(part.len() <= limit as usize);
            assert_gapless(after, &part);
            let Some(last) = part.last() else { break };
            after = last.version();
            parts.extend(part);
        }
        assert_eq!(parts, log, "in parts of {limit}");
    }
}

/// A read after the last append of a log returns nothing, and so does a read with a limit of zero.
pub async fn reading_at_the_end_is_empty(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    writer.add("a").await;
    assert_eq!(store.read_log(&writer.session, 2, 10).await.unwrap(), []);
    assert_eq!(store.read_log(&writer.session, 0, 0).await.unwrap(), []);
}

/// Reads that were started and are not polled any more do not block an append to the same store. They complete when
/// they are polled again.
pub async fn operations_that_are_not_polled_block_no_others(harness: &impl StoreHarness) {
    const STARTED: usize = 2000;
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let session = writer.session.clone();
    let operations = (0..STARTED).map(|_| store.head(&session));
    let pending: Vec<_> = operations
        .filter_map(|mut operation| (&mut operation).now_or_never().is_none().then_some(operation))
        .collect();
    within(writer.add("a")).await;
    for operation in pending {
        assert!(within(operation).await.unwrap().is_some());
    }
}
