//! Scenarios for lists of sessions.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::store::{
    Append, Head, LeaseChange, MAX_PAGE, NewSession, Page, SessionFilter, SessionStatus,
    StateStore, Summary,
};
use helix_agents_test::within;

use super::StoreHarness;
use super::support::{
    LONG, Writer, child, first, head, id, idle, now, root_session, running, with_fixed_read_time,
};

async fn list(store: &Arc<dyn StateStore>, filter: &SessionFilter, page: &Page) -> Vec<Head> {
    let heads = store.list(filter, page).await.unwrap();
    assert_newest_first(&heads);
    heads.into_iter().map(with_fixed_read_time).collect()
}

#[track_caller]
fn assert_newest_first(heads: &[Head]) {
    let order: Vec<_> = heads.iter().map(|head| (head.created_at, head.session.clone())).collect();
    assert!(order.is_sorted_by(|one, next| one > next), "not newest first: {order:?}");
}

/// Returns the ids of all sessions that a filter selects, ordered by id.
async fn names(store: &Arc<dyn StateStore>, filter: &SessionFilter) -> Vec<String> {
    let heads = list(store, filter, &Page::default()).await;
    let mut names: Vec<String> = heads.iter().map(|head| head.session.to_string()).collect();
    names.sort();
    names
}

async fn create(store: &Arc<dyn StateStore>, new: NewSession, name: &str, summary: Summary) {
    create_with(store, new, name, summary, LeaseChange::Keep).await;
}

async fn create_with(
    store: &Arc<dyn StateStore>,
    new: NewSession,
    name: &str,
    summary: Summary,
    lease: LeaseChange,
) {
    let first = Append { summary: Some(summary), lease, ..first(&id(name), name) };
    Writer::create_as(store, new, first).await;
}

/// The list of an empty store is empty, both without a filter and with a filter that has every condition.
pub async fn an_empty_store_lists_nothing(harness: &impl StoreHarness) {
    let store = harness.open().await;
    assert_eq!(names(&store, &SessionFilter::default()).await.len(), 0);
    let all = SessionFilter::new()
        .agent("a")
        .status(SessionStatus::Active)
        .root("r")
        .runtime("local")
        .pending()
        .lease_expired()
        .wake_due()
        .created_from(Timestamp(0))
        .created_before(Timestamp(i64::MAX));
    assert_eq!(names(&store, &all).await.len(), 0);
}

/// Sessions are ordered by creation time and then by id, both descending. The heads are complete.
pub async fn sessions_are_listed_newest_first(harness: &impl StoreHarness) {
    let store = harness.open().await;
    for number in [3, 1, 4, 15, 9, 2, 6, 5, 35] {
        Writer::create(&store, &format!("s{number}")).await;
    }
    let heads = list(&store, &SessionFilter::default(), &Page::default()).await;
    assert_eq!(heads.len(), 9);
    for listed in heads {
        assert_eq!(head(&store, &listed.session).await, listed);
    }
}

/// Sessions are listed by creation time, and the id matters only if the times are equal. A later append does not change
/// the order.
pub async fn sessions_are_listed_by_creation_whatever_is_appended_later(
    harness: &impl StoreHarness,
) {
    let store = harness.open().await;
    let mut writers = Vec::new();
    for name in ["b", "c", "a", "d"] {
        let writer = Writer::create(&store, name).await;
        let created = writer.head().await.created_at;
        while now(&store, &writer.session).await <= created {
            tokio::task::yield_now().await;
        }
        writers.push(writer);
    }
    for place in [2, 0, 1] {
        writers[place].add("late").await;
        let heads = list(&store, &any(), &Page::default()).await;
        let names: Vec<_> = heads.iter().map(|head| head.session.as_str()).collect();
        assert_eq!(names, ["d", "a", "c", "b"]);
    }
}

/// Creates the sessions of the filter scenarios.
async fn mixed(harness: &impl StoreHarness) -> Arc<dyn StateStore> {
    let store = harness.open().await;
    let failed = Summary { status: SessionStatus::Failed, ..idle() };
    let remote = Summary { runtime: "temporal".into(), ..failed.clone() };
    create(&store, root_session(&id("idle")), "idle", idle()).await;
    create(&store, root_session(&id("failed")), "failed", failed.clone()).await;
    create(&store, child(&id("idle"), &id("idle")), "child", idle()).await;
    let grandchild = child(&id("child"), &id("idle"));
    create(&store, grandchild, "grandchild", failed).await;
    create(&store, root_session(&id("remote")), "remote", remote).await;
    let held = LeaseChange::Take(LONG);
    create_with(&store, root_session(&id("held")), "held", running("r"), held).await;
    let ran_out = LeaseChange::Take(Duration::ZERO);
    create_with(&store, root_session(&id("stopped")), "stopped", running("r"), ran_out).await;
    let due = Summary { wake_at: Some(Timestamp(1)), ..idle() };
    create(&store, root_session(&id("due")), "due", due).await;
    let asks = Summary { pending: 2, ..idle() };
    create(&store, child(&id("held"), &id("held")), "asks", asks).await;
    store
}

fn any() -> SessionFilter {
    SessionFilter::default()
}

/// A filter with a single condition selects exactly the sessions that meet it.
pub async fn each_filter_selects_alone(harness: &impl StoreHarness) {
    let store = mixed(harness).await;
    let cases = [
        (any().agent("child"), "asks child grandchild"),
        (any().agent("missing"), ""),
        (any().status(SessionStatus::Failed), "failed grandchild remote"),
        (any().status(SessionStatus::Aborted), ""),
        (any().root("idle"), "child grandchild idle"),
        (any().root("child"), ""),
        (any().runtime("temporal"), "remote"),
        (any().pending(), "asks"),
        (any().lease_expired(), "stopped"),
        (any().wake_due(), "due"),
        (any(), "asks child due failed grandchild held idle remote stopped"),
    ];
    for (filter, expected) in cases {
        assert_eq!(names(&store, &filter).await.join(" "), expected, "{filter:?}");
    }
}

/// A filter with several conditions selects only the sessions that meet all of them.
pub async fn filters_hold_together(harness: &impl StoreHarness) {
    let store = mixed(harness).await;
    let failed = any().status(SessionStatus::Failed);
    let cases = [
        (failed.clone().agent("agent"), "failed remote"),
        (failed.clone().root("idle"), "grandchild"),
        (failed.clone().runtime("local"), "failed grandchild"),
        (failed.clone().pending(), ""),
        (any().root("held").pending(), "asks"),
        (failed.clone().lease_expired(), ""),
        (any().wake_due().lease_expired(), ""),
        (failed.agent("child").root("idle").runtime("local"), "grandchild"),
    ];
    for (filter, expected) in cases {
        assert_eq!(names(&store, &filter).await.join(" "), expected, "{filter:?}");
    }
}

/// The filter `lease_expired` selects a session with a current run whose lease has expired or was released. It does not
/// select a session whose run has ended.
pub async fn a_run_with_an_expired_lease_is_listed_as_expired(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let expired = any().lease_expired();
    let states = [
        (running("r"), LeaseChange::Take(LONG), 0),
        (running("r"), LeaseChange::Take(Duration::ZERO), 1),
        (running("r"), LeaseChange::Take(LONG), 0),
        (running("r"), LeaseChange::Clear, 1),
        (idle(), LeaseChange::Take(Duration::ZERO), 0),
        (idle(), LeaseChange::Clear, 0),
    ];
    for (number, (summary, lease, expected)) in states.into_iter().enumerate() {
        let next = Append { summary: Some(summary), lease, ..writer.next(&format!("a{number}")) };
        writer.take(next).await;
        assert_eq!(names(&store, &expired).await.len(), expected, "after a{number}");
    }
}

/// The filter `pending` selects a session as long as its summary has pending calls.
pub async fn a_session_is_pending_while_calls_wait_for_answers(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let waits = any().pending();
    for (number, pending) in [0, 3, 1, 0].into_iter().enumerate() {
        let summary = Some(Summary { pending, ..idle() });
        writer.take(Append { summary, ..writer.next(&format!("a{number}")) }).await;
        assert_eq!(names(&store, &waits).await.is_empty(), pending == 0, "{pending}");
    }
}

/// The filter `wake_due` selects a session whose wake-up time has passed. It does not select the session before that
/// time, nor after the wake-up time was removed.
pub async fn a_session_is_due_once_its_wake_up_time_has_passed(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let due = any().wake_due();
    let at = writer.head().await.created_at;
    let wakes =
        [(None, 0), (Some(at.after(LONG)), 0), (Some(at), 1), (Some(Timestamp(0)), 1), (None, 0)];
    for (number, (wake_at, expected)) in wakes.into_iter().enumerate() {
        let next = Append {
            summary: Some(Summary { wake_at, ..idle() }),
            ..writer.next(&format!("a{number}"))
        };
        writer.take(next).await;
        assert_eq!(names(&store, &due).await.len(), expected, "{wake_at:?}");
    }
}

/// The pages of a list contain every session once, in the order of the whole list. A page with a limit of zero is
/// empty.
pub async fn a_list_can_be_read_in_pages(harness: &impl StoreHarness) {
    let store = harness.open().await;
    for number in 0..25 {
        Writer::create(&store, &format!("s{}", number * 7 % 25)).await;
    }
    let whole = list(&store, &any(), &Page::default()).await;
    assert_eq!(whole.len(), 25);
    for limit in [1, 10, 25] {
        assert_eq!(pages(&store, &any(), limit).await, whole, "in pages of {limit}");
    }
    let nothing = Page { limit: 0, ..Page::default() };
    assert_eq!(list(&store, &any(), &nothing).await, []);
}

async fn pages(store: &Arc<dyn StateStore>, filter: &SessionFilter, limit: u32) -> Vec<Head> {
    let mut all: Vec<Head> = Vec::new();
    loop {
        let after = all.last().map(|head| head.session.clone());
        let page = list(store, filter, &Page { after, limit }).await;
        assert!(page.len() <= limit as usize);
        if page.is_empty() {
            return all;
        }
        assert!(all.len() < 5000, "the pages never end");
        all.extend(page);
    }
}

/// A page can start after a session that its filter no longer selects, and continues with the sessions that follow.
pub async fn a_page_continues_within_its_filter(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writers = Vec::new();
    for number in 0..10 {
        writers.push(Writer::create(&store, &format!("s{number}")).await);
    }
    let active = any().status(SessionStatus::Active);
    let whole = list(&store, &active, &Page::default()).await;
    let last = &whole[3].session;
    let writer = writers.iter_mut().find(|writer| writer.session == *last).unwrap();
    let done = Append {
        summary: Some(Summary { status: SessionStatus::Completed, ..idle() }),
        ..writer.next("done")
    };
    writer.take(done).await;
    let page = Page { after: Some(last.clone()), limit: 100 };
    assert_eq!(list(&store, &active, &page).await, whole[4..]);
}

/// A page after a session that was deleted or never existed fails with `session_not_found`, because an empty page would
/// look like the end of the list.
pub async fn a_page_after_a_session_that_is_gone_is_an_error(harness: &impl StoreHarness) {
    let store = harness.open().await;
    for session in ["first", "gone", "last"] {
        Writer::create(&store, session).await;
    }
    assert!(store.delete(&id("gone")).await.unwrap());
    for session in ["gone", "never"] {
        let page = Page { after: Some(id(session)), limit: 10 };
        let error = store.list(&any(), &page).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::SessionNotFound, "{session}");
    }
}

/// A page contains at most `MAX_PAGE` sessions, even if its limit is higher. Further pages contain the rest.
pub async fn a_page_has_a_largest_size(harness: &impl StoreHarness) {
    const TASKS: u32 = 8;
    let store = harness.open().await;
    let mut tasks = Vec::new();
    for task in 0..TASKS {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move {
            for number in (task..=MAX_PAGE).step_by(TASKS as usize) {
                Writer::create(&store, &format!("s{number}")).await;
            }
        }));
    }
    for task in tasks {
        within(task).await.unwrap();
    }
    let page = Page { after: None, limit: u32::MAX };
    let heads = list(&store, &any(), &page).await;
    assert_eq!(heads.len(), MAX_PAGE as usize);
    assert_eq!(pages(&store, &any(), 600).await.len(), heads.len() + 1);
}
