//! Reading logs in parts.

use futures_util::FutureExt as _;
use helix_agents_core::store::Append;

use super::StoreHarness;
use super::support::{Writer, assert_gapless};
use crate::gate::within;

/// From the end of any append, at most as many as asked for.
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

/// A reader that is up to date hears so, and one that asks for nothing gets it.
pub async fn reading_at_the_end_is_empty(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    writer.add("a").await;
    assert_eq!(store.read_log(&writer.session, 2, 10).await.unwrap(), []);
    assert_eq!(store.read_log(&writer.session, 0, 0).await.unwrap(), []);
}

/// Somebody asked and then turned to something else, with the answer still to come. What it turned to
/// may be the same store: whatever an operation holds, it gives back by itself.
pub async fn operations_that_nobody_polls_hold_up_no_others(harness: &impl StoreHarness) {
    const ASKED: usize = 2000;
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let session = writer.session.clone();
    let asked = (0..ASKED).map(|_| store.head(&session));
    let asked: Vec<_> =
        asked.filter_map(|mut ask| (&mut ask).now_or_never().is_none().then_some(ask)).collect();
    within(writer.add("a")).await;
    for ask in asked {
        assert!(within(ask).await.unwrap().is_some());
    }
}
