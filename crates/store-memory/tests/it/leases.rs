//! Lease expiry by the clock that a store was given.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::clock::{Clock, Timestamp};
use helix_agents_core::store::{
    Append, Guard, LeaseChange, NewSession, Page, Position, SessionFilter, SessionStatus,
    StateStore as _, Summary,
};
use helix_agents_store_memory::{MemoryOptions, MemoryStore};

const LEASE: Duration = Duration::from_secs(30);

/// A clock that only advances when a test sets it.
#[derive(Debug)]
struct ManualClock(AtomicI64);

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, _: Duration) {
        std::future::pending().await
    }
}

fn running() -> Summary {
    Summary {
        status: SessionStatus::Active,
        run: Some("r".into()),
        runtime: "test".into(),
        pending: 0,
        wake_at: None,
    }
}

fn first() -> (NewSession, Append) {
    let new =
        NewSession { agent: "a".into(), root: "s".into(), parent: None, tags: Default::default() };
    let append = Append {
        session: "s".into(),
        id: "1".into(),
        expected: Position::start(),
        run: Some("r".into()),
        schema: 1,
        count: 1,
        body: b"[]".as_slice().into(),
        summary: Some(running()),
        usage: None,
        lease: LeaseChange::Take(LEASE),
        guard: Guard::None,
    };
    (new, append)
}

#[tokio::test]
async fn a_lease_expires_by_the_clock_that_the_store_was_given() {
    let clock = Arc::new(ManualClock(AtomicI64::new(1_000)));
    let store =
        MemoryStore::with_clock(MemoryOptions::default(), Arc::<ManualClock>::clone(&clock));
    let (new, append) = first();
    store.create_session(new, append).await.unwrap();
    let expired = SessionFilter::new().lease_expired();

    clock.0.store(30_999, Ordering::Relaxed);
    assert!(store.head(&"s".into()).await.unwrap().unwrap().is_leased());
    assert!(store.list(&expired, &Page::default()).await.unwrap().is_empty());

    clock.0.store(31_000, Ordering::Relaxed);
    let head = store.head(&"s".into()).await.unwrap().unwrap();
    assert_eq!((head.is_leased(), head.read_at), (false, Timestamp(31_000)));
    assert_eq!(store.list(&expired, &Page::default()).await.unwrap().len(), 1);
}
