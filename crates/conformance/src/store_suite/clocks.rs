//! Scenarios for the clock: all handles share one clock, and comparisons are exact to the millisecond.
//!
//! No scenario waits for a fixed time. Each one calls the store until a call is judged at the exact moment,
//! or uses the times of the replies to check the decisions of the store.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::store::{
    Append, AppendOutcome, Guard, Head, LeaseChange, Page, SessionFilter, StateStore, Summary,
};

use super::StoreHarness;
use super::support::{LONG, Writer, idle, now, run, running};

/// Number of times that a scenario hits its moment.
const ROUNDS: usize = 12;

/// All handles read the same clock. A handle with a clock of its own would expire the lease of a live owner.
pub async fn every_handle_reads_the_same_clock(harness: &impl StoreHarness) {
    let handles = [harness.open().await, harness.open().await, harness.open().await];
    for (number, creator) in handles.iter().enumerate() {
        let writer = Writer::create(creator, &format!("s{number}")).await;
        let take = Append {
            summary: Some(running("r")),
            lease: LeaseChange::Take(LONG),
            ..writer.next("take")
        };
        let mut writer = writer;
        let mut times = vec![writer.take(take).await];
        for store in handles.iter().chain(handles.iter().rev()) {
            let head = store.head(&writer.session).await.unwrap().unwrap();
            assert!(head.is_leased(), "{head:?}");
            let listed = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
            let listed = listed.into_iter().find(|head| head.session == writer.session).unwrap();
            let renewal = store.renew(&writer.session, &run("r"), LONG).await.unwrap();
            let judged = now(store, &writer.session).await;
            times.extend([head.read_at, listed.read_at, renewal.head.read_at, judged]);
        }
        assert!(times.is_sorted(), "the handles have different clocks: {times:?}");
    }
}

/// A lease is held up to its last millisecond, and is free from the moment of its expiry.
pub async fn a_lease_is_free_from_the_moment_of_its_end(harness: &impl StoreHarness) {
    let handles = [harness.open().await, harness.open().await];
    let mut writer = Writer::create(&handles[0], "s").await;
    for round in 0..ROUNDS {
        let take = Append {
            summary: Some(running("r")),
            lease: LeaseChange::Take(Duration::from_millis(2)),
            ..writer.next(&format!("take {round}"))
        };
        let until = writer.take(take).await.after(Duration::from_millis(2));
        for attempt in 0.. {
            writer.store = Arc::clone(&handles[attempt % 2]);
            let next = Append {
                guard: Guard::LeaseFree,
                lease: LeaseChange::Clear,
                ..writer.next(&format!("free {round}"))
            };
            let position = next.clone();
            match writer.store.append(next).await.unwrap() {
                AppendOutcome::Appended { at } => {
                    assert!(at >= until, "taken at {}, leased until {}", at.0, until.0);
                    writer.follow(&position);
                    break;
                }
                AppendOutcome::GuardFailed { lease_until, now } => {
                    assert_eq!(lease_until, Some(until));
                    assert!(now < until, "refused at {}, leased until {}", now.0, until.0);
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A deadline is the last moment at which an append is accepted.
pub async fn an_append_is_taken_up_to_the_moment_of_its_deadline(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    for round in 0..ROUNDS {
        let deadline = now(&store, &writer.session).await.after(Duration::from_millis(2));
        for attempt in 0.. {
            let next = Append {
                guard: Guard::NotAfter(deadline),
                ..writer.next(&format!("{round}/{attempt}"))
            };
            let position = next.clone();
            match store.append(next).await.unwrap() {
                AppendOutcome::Appended { at } => {
                    assert!(at <= deadline, "taken at {}, due by {}", at.0, deadline.0);
                    writer.follow(&position);
                }
                AppendOutcome::GuardFailed { lease_until, now } => {
                    assert_eq!(lease_until, None);
                    assert!(now > deadline, "refused at {}, due by {}", now.0, deadline.0);
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A session is due from the exact moment of its wake-up time.
pub async fn a_session_is_due_from_its_wake_up_time_on(harness: &impl StoreHarness) {
    let filter = SessionFilter::new().wake_due();
    listed_from_its_moment(harness, &filter, |writer, moment| Append {
        summary: Some(Summary { wake_at: Some(moment), ..idle() }),
        ..writer.next(&format!("wake at {}", moment.0))
    })
    .await;
}

/// The filter `lease_expired` selects a session from the exact moment at which its lease expires.
pub async fn a_lease_is_listed_as_expired_from_the_moment_of_its_end(harness: &impl StoreHarness) {
    let filter = SessionFilter::new().lease_expired();
    listed_from_its_moment(harness, &filter, |writer, moment| Append {
        summary: Some(Summary { wake_at: Some(moment), ..running("r") }),
        lease: LeaseChange::Take(Duration::from_millis(2)),
        ..writer.next(&format!("until {}", moment.0))
    })
    .await;
}

/// Returns the first moment at which the filter selects the session.
fn moment(filter: &SessionFilter, head: &Head) -> Timestamp {
    let moment = if filter.wake_due { head.summary.wake_at } else { head.lease_until };
    moment.unwrap()
}

async fn listed_from_its_moment(
    harness: &impl StoreHarness,
    filter: &SessionFilter,
    append: impl Fn(&Writer, Timestamp) -> Append,
) {
    let store: Arc<dyn StateStore> = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    for _ in 0..ROUNDS {
        let soon = now(&store, &writer.session).await.after(Duration::from_millis(2));
        writer.take(append(&writer, soon)).await;
        let head = writer.head().await;
        let moment = moment(filter, &head);
        loop {
            let before = now(&store, &writer.session).await;
            let listed = store.list(filter, &Page::default()).await.unwrap();
            let Some(listed) = listed.first() else {
                assert!(before < moment, "not listed at {}, expected from {}", before.0, moment.0);
                continue;
            };
            let at = listed.read_at;
            assert!(at >= moment, "listed at {}, expected from {}", at.0, moment.0);
            break;
        }
    }
}
