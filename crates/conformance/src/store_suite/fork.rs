//! Scenarios for forking sessions.

use std::sync::Arc;

use bytes::Bytes;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, ForkOutcome, Guard, LeaseChange, Page, Position,
    SessionFilter, StateStore, StoredAppend,
};

use super::StoreHarness;
use super::support::{
    LONG, Writer, append, assert_gapless, first, head, id, idle, ids, log, missed, root_session,
    run, running, taken, with_fixed_read_time,
};

/// Creates a session with these appends after `first`.
async fn written(store: &Arc<dyn StateStore>, session: &str, appends: &[&str]) -> Writer {
    let mut writer = Writer::create(store, session).await;
    for append in appends {
        writer.add(append).await;
    }
    writer
}

/// Returns the position after the n-th append of one event each.
fn at(version: u64, append: &str) -> Position {
    Position { version, append: append.into() }
}

/// Returns the first append of a fork.
fn first_of_fork(session: &SessionId, position: &Position, id: &str) -> Append {
    Append { summary: Some(idle()), ..append(session, position, id) }
}

/// Forks a session and asserts success.
async fn forked(
    store: &Arc<dyn StateStore>,
    from: &SessionId,
    session: &str,
    position: Position,
) -> Writer {
    let session = id(session);
    let append = first_of_fork(&session, &position, &format!("{session} begins"));
    let own = Position { version: position.version + 1, append: append.id.clone() };
    let outcome = store.fork(from, root_session(&session), append).await.unwrap();
    assert!(matches!(outcome, ForkOutcome::Created { .. }), "{outcome:?}");
    Writer { store: Arc::clone(store), session, position: own }
}

async fn names(store: &Arc<dyn StateStore>) -> Vec<String> {
    let heads = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    let mut names: Vec<_> = heads.into_iter().map(|head| head.session.to_string()).collect();
    names.sort();
    names
}

/// A fork shares the appends of its original up to the fork, including their times. Its head has the position, summary,
/// lease and times of the fork's first append.
pub async fn a_fork_starts_with_the_events_of_its_original(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let original = written(&store, "s", &["a", "b", "c"]).await;
    let session = id("fork");
    let first = Append {
        run: Some(run("r")),
        count: 2,
        body: Bytes::from_static(b"two"),
        summary: Some(running("r")),
        lease: LeaseChange::Take(LONG),
        ..append(&session, &at(3, "b"), "f")
    };
    let new = root_session(&session);
    let outcome = store.fork(&original.session, new.clone(), first).await.unwrap();
    let ForkOutcome::Created { at: when } = outcome else { panic!("not made: {outcome:?}") };

    let (theirs, log) = (original.log().await, log(&store, &session).await);
    assert_eq!(log[..3], theirs[..3]);
    assert_eq!(ids(&log), ["first", "a", "b", "f"]);
    assert_eq!((log[3].first, log[3].count, log[3].at), (4, 2, when));
    assert!(when >= theirs[2].at);
    let head = head(&store, &session).await;
    assert_eq!(head.created, new);
    assert_eq!((head.position, head.summary), (at(5, "f"), running("r")));
    assert_eq!((head.created_at, head.updated_at), (when, when));
    assert_eq!(head.lease_until, Some(when.after(LONG)));
    assert_eq!(names(&store).await, ["fork", "s"]);
}

/// Appends to a fork are not in the log of its original, and later appends to the original are not in the log of the
/// fork. The two sessions can use the same append ids.
pub async fn a_fork_and_its_original_continue_independently(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut original = written(&store, "s", &["a", "b"]).await;
    let before = original.head().await;
    let mut fork = forked(&store, &original.session, "fork", at(2, "a")).await;
    assert_eq!(original.head().await, before);
    for name in ["x", "y"] {
        original.add(name).await;
        fork.add(name).await;
    }
    assert_eq!(original.ids().await, ["first", "a", "b", "x", "y"]);
    assert_eq!(fork.ids().await, ["first", "a", "fork begins", "x", "y"]);
    let other = harness.open().await;
    assert_eq!(log(&other, &fork.session).await, fork.log().await);
}

/// Compare-and-append works for every position of the fork, including the shared ones.
pub async fn positions_of_a_fork_are_judged_like_any_others(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let original = written(&store, "s", &["a", "b", "c"]).await;
    let fork = forked(&store, &original.session, "fork", at(2, "a")).await;
    let send = async |position, id: &str| {
        store.append(append(&fork.session, &position, id)).await.unwrap()
    };
    assert_eq!(ids(&missed(send(at(2, "a"), "x").await)), ["fork begins"]);
    assert_eq!(ids(&missed(send(at(1, "first"), "x").await)), ["a", "fork begins"]);
    let all = missed(send(Position::start(), "x").await);
    assert_eq!(ids(&all), ["first", "a", "fork begins"]);
    // Later appends of the original are not in the fork's history.
    assert_eq!(send(at(3, "b"), "x").await, AppendOutcome::HistoryLost);
    assert_eq!(send(at(4, "c"), "x").await, AppendOutcome::HistoryLost);
    // Repetitions of shared appends and of the fork's first append.
    taken(&send(at(1, "first"), "a").await);
    taken(&send(at(2, "a"), "fork begins").await);
    assert_eq!(fork.ids().await, ["first", "a", "fork begins"]);
}

/// The log of a fork can be read in parts of any size and from the end of any append. A part may contain shared appends
/// and the fork's own.
pub async fn a_fork_can_be_read_across_the_seam(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut original = written(&store, "s", &["a"]).await;
    original.take(Append { count: 3, ..original.next("b") }).await;
    original.add("c").await;
    let mut fork = forked(&store, &original.session, "fork", at(5, "b")).await;
    fork.take(Append { count: 2, ..fork.next("d") }).await;
    fork.add("e").await;
    let whole = fork.log().await;
    assert_eq!(ids(&whole), ["first", "a", "b", "fork begins", "d", "e"]);
    for limit in 1..=7 {
        for start in [0, 1, 2, 5, 6, 8, 9] {
            let (mut after, mut parts): (u64, Vec<StoredAppend>) = (start, Vec::new());
            loop {
                let part = store.read_log(&fork.session, after, limit).await.unwrap();
                assert!(part.len() <= limit as usize);
                assert_gapless(after, &part);
                let Some(last) = part.last() else { break };
                after = last.version();
                parts.extend(part);
            }
            let expected: Vec<_> =
                whole.iter().filter(|append| append.first > start).cloned().collect();
            assert_eq!(parts, expected, "from {start} in parts of {limit}");
        }
    }
}

/// A fork can be taken at the end of the log and in the middle. A fork of a fork can start within the shared
/// part and after it.
pub async fn forks_can_be_forked(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let original = written(&store, "s", &["a", "b"]).await;
    let mut fork = forked(&store, &original.session, "one", at(3, "b")).await;
    fork.add("c").await;
    let before = forked(&store, &fork.session, "two", at(2, "a")).await;
    let seam = forked(&store, &fork.session, "three", at(3, "b")).await;
    let mut behind = forked(&store, &fork.session, "four", at(4, "one begins")).await;
    behind.add("d").await;
    let deep = forked(&store, &behind.session, "five", at(6, "d")).await;
    assert_eq!(before.ids().await, ["first", "a", "two begins"]);
    assert_eq!(seam.ids().await, ["first", "a", "b", "three begins"]);
    assert_eq!(behind.ids().await, ["first", "a", "b", "one begins", "four begins", "d"]);
    let all = ["first", "a", "b", "one begins", "four begins", "d", "five begins"];
    assert_eq!(deep.ids().await, all);
    assert_eq!(fork.ids().await, ["first", "a", "b", "one begins", "c"]);
}

/// A fork at a position where no append of the original ends gets `HistoryLost`. A fork with an unknown original or an
/// invalid first append fails. No session is created.
pub async fn a_fork_from_where_the_original_never_was_is_refused(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut original = written(&store, "s", &["a"]).await;
    original.take(Append { count: 3, ..original.next("b") }).await;
    let session = id("fork");
    let fork =
        async |from: &SessionId, first| store.fork(from, root_session(&session), first).await;
    for position in [at(2, "b"), at(3, "b"), at(4, "a"), at(6, "b"), at(99, "a"), at(5, "a")] {
        let outcome =
            fork(&original.session, first_of_fork(&session, &position, "f")).await.unwrap();
        assert_eq!(outcome, ForkOutcome::HistoryLost, "{position:?}");
    }
    let code = |outcome: helix_agents_core::error::Result<ForkOutcome>| outcome.unwrap_err().code();
    let good = first_of_fork(&session, &at(2, "a"), "f");
    assert_eq!(code(fork(&id("missing"), good.clone()).await), ErrorCode::SessionNotFound);
    for bad in [
        first(&session, "f"),
        Append { summary: None, ..good.clone() },
        Append { count: 0, ..good.clone() },
        first_of_fork(&original.session, &at(2, "a"), "f"),
    ] {
        assert_eq!(code(fork(&original.session, bad).await), ErrorCode::InputInvalid);
    }
    assert_eq!(names(&store).await, ["s"]);
    assert_eq!(store.head(&session).await.unwrap(), None);
    assert!(matches!(fork(&original.session, good).await.unwrap(), ForkOutcome::Created { .. }));
}

/// A repeated fork returns the outcome of the first call, even after later appends. Another fork or creation with the
/// same session id gets `Exists`, regardless of its position.
pub async fn a_repeated_fork_is_answered_as_the_first_time(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let original = written(&store, "s", &["a"]).await;
    let session = id("fork");
    let first = first_of_fork(&session, &at(2, "a"), "f");
    let fork = async |first: &Append| {
        store.fork(&original.session, root_session(&session), first.clone()).await.unwrap()
    };
    let made = fork(&first).await;
    assert!(matches!(made, ForkOutcome::Created { .. }));
    assert_eq!(fork(&first).await, made);
    let mut writer =
        Writer { store: Arc::clone(&store), session: session.clone(), position: at(3, "f") };
    writer.add("x").await;
    assert_eq!(fork(&first).await, made);
    assert_eq!(fork(&first_of_fork(&session, &at(2, "a"), "g")).await, ForkOutcome::Exists);
    assert_eq!(fork(&first_of_fork(&session, &at(1, "first"), "f")).await, ForkOutcome::Exists);
    assert_eq!(fork(&first_of_fork(&session, &at(9, "nowhere"), "f")).await, ForkOutcome::Exists);
    assert_eq!(writer.ids().await, ["first", "a", "f", "x"]);
    let created =
        store.create_session(root_session(&session), super::support::first(&session, "f")).await;
    assert_eq!(created.unwrap(), helix_agents_core::store::CreateOutcome::Exists);
}

/// A creation or a second fork with the id of an existing fork gets `Exists`, even if its first append has the id of a
/// shared append. Shared appends belong to the original.
pub async fn a_shared_append_does_not_identify_the_creation_of_a_fork(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut original = Writer::create(&store, "s").await;
    let at_first = original.position.clone();
    original.add("a").await;
    let fork = id("fork");
    let forking = async |position: &Position, name: &str| {
        let first = first_of_fork(&fork, position, name);
        store.fork(&original.session, root_session(&fork), first).await.unwrap()
    };
    let made = forking(&original.position, "fork").await;
    assert!(matches!(made, ForkOutcome::Created { .. }));
    let before = with_fixed_read_time(store.head(&fork).await.unwrap().unwrap());
    let created = store.create_session(root_session(&fork), first(&fork, "first")).await.unwrap();
    assert_eq!(created, CreateOutcome::Exists);
    assert_eq!(forking(&at_first, "a").await, ForkOutcome::Exists);
    assert_eq!(forking(&original.position, "fork").await, made);
    assert_eq!(with_fixed_read_time(store.head(&fork).await.unwrap().unwrap()), before);
    assert_eq!(ids(&log(&store, &fork).await), ["first", "a", "fork"]);
}

/// If several handles create a fork with the same id concurrently, one fork is created and the other calls get
/// `Exists`.
pub async fn racing_forks_have_exactly_one_winner(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let original = written(&store, "s", &["a"]).await;
    let mut handles = Vec::new();
    for _ in 0..8 {
        handles.push(harness.open().await);
    }
    let session = id("fork");
    let tries = handles.iter().enumerate().map(|(index, store)| {
        let first = first_of_fork(&session, &at(2, "a"), &format!("f{index}"));
        store.fork(&original.session, root_session(&session), first)
    });
    let outcomes = futures_util::future::join_all(tries).await;
    let made = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Ok(ForkOutcome::Created { .. })))
        .count();
    let refused =
        outcomes.iter().filter(|outcome| matches!(outcome, Ok(ForkOutcome::Exists))).count();
    assert_eq!((made, refused), (1, 7), "{outcomes:?}");
    assert_eq!(log(&store, &session).await.len(), 3);
}

/// A fork of a session with a held lease starts without a lease. The lease of the original blocks neither the fork nor
/// its appends, and can still be renewed.
pub async fn a_fork_of_a_live_session_has_its_own_lease(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut original = Writer::create(&store, "s").await;
    let held = Append {
        summary: Some(running("r")),
        lease: LeaseChange::Take(LONG),
        ..original.next("a")
    };
    original.take(held).await;
    let session = id("fork");
    let first = Append { guard: Guard::LeaseFree, ..first_of_fork(&session, &at(2, "a"), "f") };
    store.fork(&original.session, root_session(&session), first).await.unwrap();
    let head = head(&store, &session).await;
    assert_eq!((head.lease_until, head.summary.run), (None, None));
    let position = head.position;
    let go_on = Append { guard: Guard::LeaseFree, ..append(&session, &position, "x") };
    taken(&store.append(go_on).await.unwrap());
    let renewed = store.renew(&session, &run("r"), LONG).await.unwrap();
    assert!(!renewed.renewed);
    assert!(store.renew(&original.session, &run("r"), LONG).await.unwrap().renewed);
}

/// Shared appends stay readable in the remaining forks after the original and other forks are deleted. A new session
/// with the id of the deleted original is independent of the forks.
pub async fn shared_appends_survive_the_original(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let original = written(&store, "s", &["a", "b", "c"]).await;
    let mut one = forked(&store, &original.session, "one", at(3, "b")).await;
    let two = forked(&store, &one.session, "two", at(2, "a")).await;
    let mut deep = forked(&store, &one.session, "deep", at(4, "one begins")).await;
    assert!(store.delete(&original.session).await.unwrap());
    assert_eq!(store.head(&original.session).await.unwrap(), None);
    assert_eq!(names(&store).await, ["deep", "one", "two"]);
    // New sessions are not part of it.
    let mut new = written(&store, "s", &["new"]).await;
    let other = written(&store, "other", &["x"]).await;
    one.add("d").await;
    assert_eq!(one.ids().await, ["first", "a", "b", "one begins", "d"]);
    assert_eq!(two.ids().await, ["first", "a", "two begins"]);
    assert!(store.delete(&one.session).await.unwrap());
    deep.add("e").await;
    let shared = ["first", "a", "b", "one begins", "deep begins", "e"];
    assert_eq!(deep.ids().await, shared);
    let again = forked(&store, &deep.session, "again", at(4, "one begins")).await;
    assert_eq!(again.ids().await, ["first", "a", "b", "one begins", "again begins"]);
    for gone in [&deep.session, &again.session, &two.session] {
        assert!(store.delete(gone).await.unwrap());
    }
    new.add("y").await;
    assert_eq!(new.ids().await, ["first", "new", "y"]);
    assert_eq!(other.ids().await, ["first", "x"]);
    assert_eq!(names(&store).await, ["other", "s"]);
    let late = store.append(one.next("late")).await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::SessionNotFound);
}

/// Deleting a fork does not remove any append of the original.
pub async fn deleting_a_fork_leaves_the_original(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut original = written(&store, "s", &["a", "b"]).await;
    let one = forked(&store, &original.session, "one", at(2, "a")).await;
    let two = forked(&store, &original.session, "two", at(3, "b")).await;
    assert!(store.delete(&one.session).await.unwrap());
    original.add("c").await;
    assert_eq!(original.ids().await, ["first", "a", "b", "c"]);
    assert_eq!(two.ids().await, ["first", "a", "b", "two begins"]);
    let one = forked(&store, &original.session, "one", at(4, "c")).await;
    assert_eq!(one.ids().await, ["first", "a", "b", "c", "one begins"]);
}
