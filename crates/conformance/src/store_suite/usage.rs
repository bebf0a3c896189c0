//! Scenarios for the usage that a store keeps of each session.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::budget::Cost;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{
    Append, AppendOutcome, ForkOutcome, Guard, Page, Position, Purge, SessionFilter, SessionStatus,
    SessionUsage, StateStore,
};
use helix_agents_core::usage::{
    CustomRecords, ModelUsage, SubAgentUsage, ToolUsage, Usage, UsageRollup,
};
use helix_agents_test::{Gate, within};

use super::StoreHarness;
use super::support::{
    Writer, append, child, first, head, id, idle, now, root_session, with_fixed_read_time,
};

/// Returns usage with a distinguishing number of steps.
fn steps(steps: u64) -> Arc<UsageRollup> {
    let mut usage = UsageRollup::default();
    usage.steps = steps;
    Arc::new(usage)
}

/// Returns usage of every kind, with the largest numbers and unusual names.
fn everything() -> Arc<UsageRollup> {
    let tokens = Usage::new(u64::MAX, 1 << 53)
        .with_cached_tokens(9_007_199_254_740_993)
        .with_reasoning_tokens(1);
    let (calls, failed, took_ms, cost) = (u64::MAX, 2, 1 << 60, Cost(u64::MAX - 1));
    let (strange, quoted) = ("a\u{0}\n'\"\\ ü 名", "{\"a\": [1]}");
    let amounts =
        [(strange.into(), 0.1 + 0.2), ("most".into(), f64::MAX), ("least".into(), -5e-324)];
    let mut model = ModelUsage::default();
    (model.calls, model.failed, model.took_ms) = (calls, failed, took_ms);
    (model.tokens, model.cost) = (tokens, cost);
    let mut tool = ToolUsage::default();
    (tool.calls, tool.failed, tool.took_ms) = (calls, failed, took_ms);
    let mut sub_agent = SubAgentUsage::default();
    (sub_agent.calls, sub_agent.failed, sub_agent.tokens) = (calls, failed, tokens);
    let mut records = CustomRecords::default();
    (records.calls, records.failed) = (calls, failed);
    let mut usage = UsageRollup::default();
    (usage.tokens, usage.cost) = (tokens, cost);
    (usage.steps, usage.tool_calls) = (u64::MAX, 3);
    usage.models = [(strange.into(), model)].into();
    usage.tools = [(quoted.into(), tool)].into();
    usage.sub_agents = [("".into(), sub_agent)].into();
    usage.custom = [(quoted.into(), amounts.into())].into();
    usage.custom_records = [(quoted.into(), [(strange.into(), records)].into())].into();
    Arc::new(usage)
}

async fn list(store: &Arc<dyn StateStore>, filter: &SessionFilter) -> Vec<SessionUsage> {
    let found = store.list_usage(filter, &Page::default()).await.unwrap();
    found
        .into_iter()
        .map(|found| SessionUsage { head: with_fixed_read_time(found.head), ..found })
        .collect()
}

/// Returns the usage of one session, and asserts that the returned head is the session's.
async fn usage_of(store: &Arc<dyn StateStore>, session: &SessionId) -> Option<Arc<UsageRollup>> {
    let all = list(store, &SessionFilter::default()).await;
    let found = all.into_iter().find(|usage| usage.head.session == *session).unwrap();
    assert_eq!(found.head, head(store, session).await);
    found.usage
}

/// The usage of a session is the last usage that its creation or an append contained, with or without a summary. Every
/// handle reads it unchanged.
pub async fn usage_is_that_of_the_last_append(harness: &impl StoreHarness) {
    let (store, other) = (harness.open().await, harness.open().await);
    let begin = Append { usage: Some(everything()), ..first(&id("s"), "first") };
    let mut writer = Writer::create_as(&store, root_session(&id("s")), begin).await;
    assert_eq!(usage_of(&other, &writer.session).await, Some(everything()));
    let less = Append { usage: Some(steps(1)), summary: Some(idle()), ..writer.next("less") };
    writer.take(less).await;
    assert_eq!(usage_of(&other, &writer.session).await, Some(steps(1)));
    writer.take(Append { usage: Some(everything()), ..writer.next("all") }).await;
    assert_eq!(usage_of(&other, &writer.session).await, Some(everything()));
}

/// An append without usage keeps the stored usage. A session without any stored usage differs from a session whose
/// usage is zero.
pub async fn an_append_without_usage_keeps_the_stored_usage(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    assert_eq!(usage_of(&store, &writer.session).await, None);
    writer.add("a").await;
    writer.take(Append { summary: Some(idle()), ..writer.next("b") }).await;
    assert_eq!(usage_of(&store, &writer.session).await, None);
    writer.take(Append { usage: Some(Arc::default()), ..writer.next("c") }).await;
    assert_eq!(usage_of(&store, &writer.session).await, Some(Arc::default()));
    writer.take(Append { usage: Some(steps(2)), ..writer.next("d") }).await;
    writer.add("e").await;
    writer.take(Append { summary: Some(idle()), ..writer.next("f") }).await;
    assert_eq!(usage_of(&store, &writer.session).await, Some(steps(2)));
}

/// An append that is not written does not change the usage: a repetition, a conflict, a failed guard, a lost
/// history, and a second creation.
pub async fn an_append_that_is_not_taken_leaves_the_usage(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let session = id("s");
    let begin = Append { usage: Some(steps(1)), ..first(&session, "first") };
    let mut writer = Writer::create_as(&store, root_session(&session), begin.clone()).await;
    let one = Append { usage: Some(steps(2)), ..writer.next("one") };
    writer.take(one.clone()).await;
    let two = Append { usage: Some(steps(3)), ..writer.next("two") };
    writer.take(two.clone()).await;

    let again = store.append(one.clone()).await.unwrap();
    assert!(matches!(again, AppendOutcome::Appended { .. }), "{again:?}");
    store.create_session(root_session(&session), begin).await.unwrap();
    let second = Append { usage: Some(steps(9)), ..first(&session, "second") };
    store.create_session(root_session(&session), second).await.unwrap();
    let conflict = Append { id: "other".into(), usage: Some(steps(9)), ..one };
    let outcome = store.append(conflict).await.unwrap();
    assert!(matches!(outcome, AppendOutcome::Conflict { .. }), "{outcome:?}");
    let (guard, usage) = (Guard::NotAfter(Timestamp(1)), Some(steps(9)));
    let outcome = store.append(Append { guard, usage, ..writer.next("late") }).await.unwrap();
    assert!(matches!(outcome, AppendOutcome::GuardFailed { .. }), "{outcome:?}");
    let elsewhere = Position { version: 3, append: "elsewhere".into() };
    let lost = Append { usage: Some(steps(9)), ..append(&session, &elsewhere, "lost") };
    assert_eq!(store.append(lost).await.unwrap(), AppendOutcome::HistoryLost);
    assert_eq!(usage_of(&store, &session).await, Some(steps(3)));
}

/// A reader of a head and its usage sees both at the same version.
pub async fn usage_and_head_become_visible_together(harness: &impl StoreHarness) {
    const APPENDS: u64 = 40;
    let (store, other) = (harness.open().await, harness.open().await);
    let begin = Append { usage: Some(steps(1)), ..first(&id("s"), "first") };
    let mut writer = Writer::create_as(&store, root_session(&id("s")), begin).await;
    let started = Gate::opened();
    let looker = started.clone();
    let looking = tokio::spawn(async move {
        looker.pass().await;
        loop {
            let [found] = &*list(&other, &SessionFilter::default()).await else { panic!() };
            let version = found.head.position.version;
            assert_eq!(found.usage, Some(steps(version)), "at version {version}");
            if version > APPENDS {
                return;
            }
        }
    });
    started.reached().await;
    for number in 1..=APPENDS {
        let usage = Some(steps(number + 1));
        writer.take(Append { usage, ..writer.next(&format!("a{number}")) }).await;
    }
    within(looking).await.unwrap();
}

/// A fork has only the usage of its own appends. The usage of the original does not count for the fork, and the usage
/// of the fork does not count for the original.
pub async fn a_fork_has_the_usage_of_its_own_appends(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let begin = Append { usage: Some(steps(5)), ..first(&id("s"), "first") };
    let mut writer = Writer::create_as(&store, root_session(&id("s")), begin).await;
    for (name, usage) in [("silent", None), ("empty", Some(Arc::default()))] {
        let fork = id(name);
        let own = append(&fork, &writer.position, "own");
        let own = Append { summary: Some(idle()), usage: usage.clone(), ..own };
        let forked = store.fork(&writer.session, root_session(&fork), own.clone()).await.unwrap();
        assert!(matches!(forked, ForkOutcome::Created { .. }), "{forked:?}");
        assert_eq!(usage_of(&store, &fork).await, usage, "{name}");
        let position = Position { version: own.expected.version + 1, append: own.id.clone() };
        let next = Append { usage: Some(steps(1)), ..append(&fork, &position, "next") };
        store.append(next).await.unwrap();
        store.fork(&writer.session, root_session(&fork), own).await.unwrap();
        assert_eq!(usage_of(&store, &fork).await, Some(steps(1)), "{name}");
    }
    assert_eq!(usage_of(&store, &writer.session).await, Some(steps(5)));
    writer.take(Append { usage: Some(steps(6)), ..writer.next("a") }).await;
    assert_eq!(usage_of(&store, &id("silent")).await, Some(steps(1)));
}

/// Deleting or purging a session removes its usage. A new session with the same id starts without usage.
pub async fn usage_goes_with_its_session(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let purge = Purge { older_than: Duration::ZERO, statuses: vec![SessionStatus::Active] };
    for purges in [false, true] {
        let begin = Append { usage: Some(steps(5)), ..first(&id("s"), "first") };
        let writer = Writer::create_as(&store, root_session(&id("s")), begin).await;
        match purges {
            true => assert_eq!(store.purge(&purge).await.unwrap(), 1),
            false => assert!(store.delete(&writer.session).await.unwrap()),
        }
        assert_eq!(list(&store, &SessionFilter::default()).await, []);
        let writer = Writer::create(&store, "s").await;
        assert_eq!(usage_of(&store, &writer.session).await, None);
        store.delete(&writer.session).await.unwrap();
    }
}

/// `list_usage` returns the same sessions as `list`, in the same order and pages. A page after an unknown session fails
/// with `session_not_found`.
pub async fn usage_is_listed_as_heads_are(harness: &impl StoreHarness) {
    let store = harness.open().await;
    for number in 0..7_u64 {
        let name = format!("s{number}");
        let new =
            if number % 3 == 0 { child(&id("s1"), &id("s1")) } else { root_session(&id(&name)) };
        let usage = (number != 4).then(|| steps(number));
        let begin = Append { usage, ..first(&id(&name), "first") };
        Writer::create_as(&store, new, begin).await;
    }
    let filters = [
        SessionFilter::default(),
        SessionFilter::new().agent("child"),
        SessionFilter::new().root("s1"),
        SessionFilter::new().pending(),
    ];
    for filter in &filters {
        let mut page = Page { after: None, limit: 2 };
        loop {
            let heads = store.list(filter, &page).await.unwrap();
            let usages = store.list_usage(filter, &page).await.unwrap();
            assert_eq!(usages.len(), heads.len());
            for (head, found) in heads.iter().zip(&usages) {
                assert_eq!(
                    with_fixed_read_time(found.head.clone()),
                    with_fixed_read_time(head.clone())
                );
                let number = head.session.as_str()[1..].parse().unwrap();
                assert_eq!(found.usage, (number != 4).then(|| steps(number)));
            }
            let Some(last) = heads.last() else { break };
            page.after = Some(last.session.clone());
        }
    }
    let gone = Page { after: Some(id("gone")), limit: 2 };
    let error = store.list_usage(&filters[0], &gone).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::SessionNotFound);
}

/// The filter `created_from` includes its time, and `created_before` excludes it. Both work on every page of `list` and
/// `list_usage`.
pub async fn sessions_are_listed_by_when_they_were_created(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut times = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        let writer = Writer::create(&store, name).await;
        let at = writer.head().await.created_at;
        while now(&store, &writer.session).await <= at {
            tokio::task::yield_now().await;
        }
        times.push(at);
    }
    let late = |at: Timestamp| Some(Timestamp(at.0 + 1));
    let cases = [
        (None, None, "e d c b a"),
        (Some(times[1]), None, "e d c b"),
        (late(times[1]), None, "e d c"),
        (None, Some(times[3]), "c b a"),
        (None, late(times[3]), "d c b a"),
        (Some(times[1]), Some(times[3]), "c b"),
        (Some(times[2]), Some(times[2]), ""),
        (Some(times[3]), Some(times[1]), ""),
        (late(times[4]), None, ""),
        (None, Some(times[0]), ""),
        (Some(Timestamp(i64::MIN)), Some(Timestamp(i64::MAX)), "e d c b a"),
    ];
    for (created_from, created_before, expected) in cases {
        let mut filter = SessionFilter::new();
        (filter.created_from, filter.created_before) = (created_from, created_before);
        for limit in [1, 2, 100] {
            let mut page = Page { after: None, limit };
            let mut names = Vec::new();
            loop {
                let heads = store.list(&filter, &page).await.unwrap();
                let usages = store.list_usage(&filter, &page).await.unwrap();
                assert!(
                    heads
                        .iter()
                        .map(|item| &item.session)
                        .eq(usages.iter().map(|item| &item.head.session))
                );
                let Some(last) = heads.last() else { break };
                page.after = Some(last.session.clone());
                names.extend(heads.iter().map(|head| head.session.to_string()));
            }
            assert_eq!(names.join(" "), expected, "{filter:?}, {limit} at a time");
        }
        let failed = filter.status(SessionStatus::Failed);
        assert_eq!(list(&store, &failed).await, []);
    }
}
