//! Scenarios for creating sessions.

use helix_agents_core::error::ErrorCode;
use helix_agents_core::guarantee::GuaranteeKind;
use helix_agents_core::id::AppendId;
use helix_agents_core::store::{
    Append, CreateOutcome, Guard, Head, LeaseChange, NewSession, Position, SessionStatus,
    StoreScope, Summary,
};

use super::StoreHarness;
use super::support::{LONG, Writer, append, child, first, head, id, log, root_session, run};

/// The head and the log contain everything that was passed at creation.
pub async fn a_created_session_reads_back_as_it_was_created(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let session = id("s");
    let new = NewSession {
        agent: "writer".into(),
        root: id("root"),
        parent: Some(id("parent")),
        tags: [("team", "a"), ("empty", "")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
    };
    let summary = Summary {
        status: SessionStatus::Interrupted,
        run: Some(run("r1")),
        runtime: "other".into(),
        pending: 7,
        wake_at: Some(helix_agents_core::clock::Timestamp(1_700_000_000_123)),
    };
    let append = Append {
        run: Some(run("r1")),
        schema: 9,
        count: 3,
        summary: Some(summary.clone()),
        lease: LeaseChange::Take(LONG),
        ..first(&session, "a1")
    };
    let body = append.body.clone();
    let outcome = store.create_session(new.clone(), append).await.unwrap();
    let CreateOutcome::Created { at } = outcome else { panic!("not created: {outcome:?}") };

    let head = head(&store, &session).await;
    let expected = Head {
        session: session.clone(),
        created: new,
        position: Position { version: 3, append: AppendId::from("a1") },
        summary,
        lease_until: Some(at.after(LONG)),
        created_at: at,
        updated_at: at,
        read_at: at,
    };
    assert_eq!(head, expected);
    let [stored] = &log(&store, &session).await[..] else { panic!("one append") };
    assert_eq!((stored.first, stored.count, stored.schema, stored.at), (1, 3, 9, at));
    assert_eq!((&stored.run, &stored.body), (&Some(run("r1")), &body));
    assert_eq!(stored.position(), head.position);
}

/// The store reports the scope that its harness declares. An executor uses the scope to refuse unsuitable combinations,
/// so it must be correct.
pub async fn a_store_states_its_scope(harness: &impl StoreHarness) {
    assert_eq!(harness.open().await.scope(), harness.scope());
}

/// A store lists every guarantee, each with a reason, so that users can choose a store. The guarantees contradict
/// neither the scope nor each other.
pub async fn a_store_states_its_guarantees_and_the_reasons(harness: &impl StoreHarness) {
    let guarantees = harness.open().await.guarantees();
    let promises: Vec<_> = guarantees.iter().map(|guarantee| guarantee.promise).collect();
    assert_eq!(promises, GuaranteeKind::OF_STORES);
    for guarantee in &guarantees {
        let reason = &*guarantee.reason;
        assert!(!reason.is_empty() && !reason.ends_with('.'), "{guarantee:?}");
    }
    let holds = |promise| {
        guarantees.iter().any(|guarantee| guarantee.promise == promise && guarantee.holds)
    };
    // The scope is independent of durability: one process may keep a file to itself.
    assert_eq!(holds(GuaranteeKind::SharedByProcesses), harness.scope() > StoreScope::Process);
    assert!(holds(GuaranteeKind::SurvivesKill) || !holds(GuaranteeKind::SurvivesPowerLoss));
}

/// Creating a session with the id of an existing session returns `Exists`. The existing session does not change.
pub async fn creating_an_existing_session_reports_it_and_changes_nothing(
    harness: &impl StoreHarness,
) {
    let store = harness.open().await;
    let writer = Writer::create(&store, "s").await;
    let before = writer.head().await;
    let mut new = root_session(&writer.session);
    new.agent = "other".into();
    let outcome = store.create_session(new, first(&writer.session, "other")).await.unwrap();
    assert_eq!(outcome, CreateOutcome::Exists);
    assert_eq!(writer.head().await, before);
    assert_eq!(writer.ids().await, ["first"]);
}

/// A first append must expect the start of the log. With any other position, `create_session` fails with
/// `input_invalid` and creates nothing.
pub async fn a_first_append_at_another_position_is_refused(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let session = id("s");
    let elsewhere = Position { version: 1, append: AppendId::from("x") };
    let late = Append { expected: elsewhere, ..first(&session, "a") };
    let error = store.create_session(root_session(&session), late).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InputInvalid);
    assert_eq!(store.head(&session).await.unwrap(), None);
}

/// A first append must have a summary, because no earlier one exists. Without it, `create_session` fails with
/// `input_invalid` and creates nothing.
pub async fn a_first_append_without_a_summary_is_refused(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let session = id("s");
    let bare = append(&session, &Position::start(), "a");
    let error = store.create_session(root_session(&session), bare).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InputInvalid);
    assert_eq!(store.head(&session).await.unwrap(), None);
}

/// A child whose first append has the guard `ParentExists` is created only if its parent exists, because another
/// process may delete the parent concurrently. The guard has no effect on a root.
pub async fn a_child_of_a_missing_session_is_not_created(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let (parent, session) = (id("parent"), id("child"));
    let create = async || {
        let guard = Guard::ParentExists;
        let first = Append { guard, ..first(&session, "first") };
        store.create_session(child(&parent, &parent), first).await.unwrap()
    };
    assert_eq!(create().await, CreateOutcome::ParentMissing);
    assert_eq!(store.head(&session).await.unwrap(), None);
    Writer::create(&store, "parent").await;
    let created = create().await;
    assert!(matches!(created, CreateOutcome::Created { .. }), "{created:?}");
    assert_eq!(create().await, created, "a repeated creation");
    assert_eq!(head(&store, &session).await.created, child(&parent, &parent));
    // A root has no parent that could be missing.
    let root = Append { guard: Guard::ParentExists, ..first(&id("root"), "first") };
    let created = store.create_session(root_session(&id("root")), root).await.unwrap();
    assert!(matches!(created, CreateOutcome::Created { .. }), "{created:?}");
}

/// `read_log`, `append` and `renew` fail with `session_not_found` for a session that does not exist.
pub async fn an_unknown_session_is_not_found(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let session = id("missing");
    assert_eq!(store.head(&session).await.unwrap(), None);
    let codes = [
        store.read_log(&session, 0, 10).await.unwrap_err().code(),
        store.append(append(&session, &Position::start(), "a")).await.unwrap_err().code(),
        store.renew(&session, &run("r"), LONG).await.unwrap_err().code(),
    ];
    assert_eq!(codes, [ErrorCode::SessionNotFound; 3]);
    assert_eq!(store.head(&session).await.unwrap(), None);
}
