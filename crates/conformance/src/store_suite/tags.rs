//! Scenarios for the tags of sessions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::store::{
    Append, CreateOutcome, ForkOutcome, LeaseChange, MAX_TAG_KEY_BYTES, MAX_TAG_VALUE_BYTES,
    MAX_TAGS, NewSession, Page, Purge, SessionFilter, SessionStatus, StateStore, Summary,
};
use helix_agents_test::{Gate, within};

use super::StoreHarness;
use super::support::{Writer, append, child, first, id, idle, now, root_session, running};
use crate::similar_ids::look_alikes;

fn tags(tags: &[(&str, &str)]) -> BTreeMap<String, String> {
    tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn with_tag(key: &str, value: &str) -> SessionFilter {
    SessionFilter::new().tag(key, value)
}

/// Creates a root session with tags.
async fn create(store: &Arc<dyn StateStore>, name: &str, own: &[(&str, &str)]) -> Writer {
    create_with(store, name, own, idle()).await
}

async fn create_with(
    store: &Arc<dyn StateStore>,
    name: &str,
    own: &[(&str, &str)],
    summary: Summary,
) -> Writer {
    let session = id(name);
    let new = NewSession { tags: tags(own), ..root_session(&session) };
    let first = Append { summary: Some(summary), ..first(&session, "first") };
    Writer::create_as(store, new, first).await
}

/// Returns the sessions that a filter selects, in the order of the list, which must be the same in pages of four, and
/// the same with usage.
async fn names(store: &Arc<dyn StateStore>, filter: &SessionFilter) -> Vec<String> {
    let whole = Page { after: None, limit: 1000 };
    let heads = store.list(filter, &whole).await.unwrap();
    let usages = store.list_usage(filter, &whole).await.unwrap();
    let order: Vec<_> = heads.iter().map(|head| (head.created_at, &head.session)).collect();
    assert!(order.is_sorted_by(|one, next| one > next), "{filter:?}: not newest first: {order:?}");
    let all: Vec<_> = heads.iter().map(|head| head.session.to_string()).collect();
    let used: Vec<_> = usages.iter().map(|usage| usage.head.session.to_string()).collect();
    assert_eq!(used, all, "{filter:?}");
    let (mut page, mut paged) = (Page { after: None, limit: 4 }, Vec::new());
    loop {
        let heads = store.list(filter, &page).await.unwrap();
        assert!(heads.len() <= 4 && paged.len() <= all.len(), "{filter:?}: too many sessions");
        let Some(last) = heads.last() else { break };
        page.after = Some(last.session.clone());
        paged.extend(heads.iter().map(|head| head.session.to_string()));
    }
    assert_eq!(paged, all, "{filter:?}");
    all
}

/// Returns the sessions that a filter selects, ordered by id.
async fn sorted(store: &Arc<dyn StateStore>, filter: &SessionFilter) -> String {
    let mut names = names(store, filter).await;
    names.sort();
    names.join(" ")
}

/// A filter by one tag selects exactly the sessions with this key and this value, on every handle. Sessions may have
/// further tags.
pub async fn sessions_are_listed_by_a_tag(harness: &impl StoreHarness) {
    let (store, other) = (harness.open().await, harness.open().await);
    for (name, own) in [
        ("ann", &[("owner", "ann")][..]),
        ("both", &[("owner", "ann"), ("team", "red")]),
        ("bob", &[("owner", "bob"), ("team", "red")]),
        ("swapped", &[("ann", "owner")]),
        ("joined", &[("owner=", "ann"), ("owner=ann", "")]),
        ("none", &[]),
    ] {
        create(&store, name, own).await;
    }
    for (filter, expected) in [
        (with_tag("owner", "ann"), "ann both"),
        (with_tag("owner", "bob"), "bob"),
        (with_tag("team", "red"), "bob both"),
        (with_tag("ann", "owner"), "swapped"),
        (with_tag("owner=ann", ""), "joined"),
        (with_tag("owner", ""), ""),
        (with_tag("owner", "eve"), ""),
        (with_tag("missing", "ann"), ""),
    ] {
        assert_eq!(sorted(&other, &filter).await, expected, "{filter:?}");
    }
}

/// A filter with several tags selects the sessions that have all of them.
pub async fn all_tags_of_a_filter_hold_together(harness: &impl StoreHarness) {
    let store = harness.open().await;
    for (name, own) in [
        ("a", &[("owner", "ann")][..]),
        ("b", &[("owner", "ann"), ("team", "red")]),
        ("c", &[("owner", "bob"), ("team", "red")]),
        ("d", &[("owner", "ann"), ("team", "red"), ("env", "test")]),
        ("e", &[("owner", "ann"), ("team", "blue"), ("env", "test")]),
    ] {
        create(&store, name, own).await;
    }
    let red = with_tag("owner", "ann").tag("team", "red");
    for (filter, expected) in [
        (red.clone(), "b d"),
        (red.clone().tag("env", "test"), "d"),
        (red.clone().tag("env", "live"), ""),
        (red.tag("zone", "1"), ""),
        (with_tag("env", "test").tag("owner", "ann"), "d e"),
        (with_tag("owner", "bob").tag("env", "test"), ""),
    ] {
        assert_eq!(sorted(&store, &filter).await, expected, "{filter:?}");
    }
}

/// Tags and all other conditions of a filter hold together, and a change of the other conditions takes effect at once.
pub async fn tags_hold_together_with_other_conditions(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let ann = [("owner", "ann")];
    let failed = Summary { status: SessionStatus::Failed, ..idle() };
    let mut writer = create(&store, "idle", &ann).await;
    let created_at = writer.head().await.created_at;
    while now(&store, &writer.session).await <= created_at {
        tokio::task::yield_now().await;
    }
    create_with(&store, "failed", &ann, failed.clone()).await;
    create_with(&store, "others", &[("owner", "bob")], failed).await;
    create_with(&store, "remote", &ann, Summary { runtime: "temporal".into(), ..idle() }).await;
    create_with(&store, "stopped", &ann, running("r")).await;
    create_with(&store, "due", &ann, Summary { wake_at: Some(Timestamp(1)), ..idle() }).await;
    create_with(&store, "asks", &ann, Summary { pending: 1, ..idle() }).await;
    create_with(&store, "asks too", &[], Summary { pending: 1, ..idle() }).await;
    let below = NewSession { tags: tags(&ann), ..child(&id("others"), &id("others")) };
    Writer::create_as(&store, below, first(&id("child"), "first")).await;

    let of_ann = || with_tag("owner", "ann");
    let later = Timestamp(created_at.0 + 1);
    for (filter, expected) in [
        (of_ann(), "asks child due failed idle remote stopped"),
        (of_ann().agent("child"), "child"),
        (of_ann().agent("agent"), "asks due failed idle remote stopped"),
        (of_ann().status(SessionStatus::Failed), "failed"),
        (of_ann().status(SessionStatus::Failed).tag("team", "red"), ""),
        (of_ann().root("others"), "child"),
        (of_ann().root("idle"), "idle"),
        (with_tag("owner", "bob").root("others"), "others"),
        (of_ann().runtime("temporal"), "remote"),
        (of_ann().pending(), "asks"),
        (of_ann().lease_expired(), "stopped"),
        (with_tag("owner", "bob").lease_expired(), ""),
        (of_ann().wake_due(), "due"),
        (with_tag("owner", "bob").wake_due(), ""),
        (of_ann().created_before(later), "idle"),
        (of_ann().created_from(later), "asks child due failed remote stopped"),
        (of_ann().created_from(later).pending().agent("agent"), "asks"),
        (of_ann().created_from(later).created_before(later), ""),
    ] {
        assert_eq!(sorted(&store, &filter).await, expected, "{filter:?}");
    }
    let waits = Append { summary: Some(Summary { pending: 2, ..idle() }), ..writer.next("waits") };
    writer.take(waits).await;
    assert_eq!(sorted(&store, &of_ann().pending()).await, "asks idle");
}

/// The sessions with a tag are listed in pages, newest first, whatever sessions without the tag are between them. A page
/// can continue after a session that the filter does not select, and fails with `session_not_found` after one that does
/// not exist.
pub async fn a_list_by_tag_can_be_read_in_pages(harness: &impl StoreHarness) {
    const SESSIONS: u32 = 120;
    let store = harness.open().await;
    let mut expected = Vec::new();
    for number in 0..SESSIONS {
        let own = if number % 10 == 3 { ("owner", "ann") } else { ("owner", "bob") };
        let has_failed = number % 20 == 3;
        let status = if has_failed { SessionStatus::Failed } else { SessionStatus::Active };
        // Descending names, for sessions that are created within a millisecond.
        let name = format!("s{}", SESSIONS - number);
        create_with(&store, &name, &[own], Summary { status, ..idle() }).await;
    }
    for head in store.list(&SessionFilter::new(), &Page { after: None, limit: 1000 }).await.unwrap()
    {
        if head.created.tags["owner"] == "ann" {
            expected.push((head.session.to_string(), head.summary.status));
        }
    }
    assert_eq!(expected.len(), 12);
    let of_ann = with_tag("owner", "ann");
    let all: Vec<_> = expected.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names(&store, &of_ann).await, all);
    let failed = expected.iter().filter(|(_, status)| *status == SessionStatus::Failed);
    let failed: Vec<_> = failed.map(|(name, _)| name.clone()).collect();
    assert_eq!(failed.len(), 6);
    assert_eq!(names(&store, &of_ann.clone().status(SessionStatus::Failed)).await, failed);
    assert_eq!(names(&store, &with_tag("owner", "bob")).await.len(), 108);

    // The sessions of the other owner are positions, too.
    let everything = names(&store, &SessionFilter::new()).await;
    for after in everything.iter().step_by(37) {
        let page = Page { after: Some(id(after)), limit: 4 };
        let heads = store.list(&of_ann, &page).await.unwrap();
        let found: Vec<_> = heads.iter().map(|head| head.session.to_string()).collect();
        let rest = everything.iter().skip_while(|name| *name != after).skip(1);
        let next: Vec<_> = rest.filter(|name| all.contains(name)).take(4).cloned().collect();
        assert_eq!(found, next, "after {after}");
    }
    let nothing = store.list(&of_ann, &Page { after: None, limit: 0 }).await.unwrap();
    assert_eq!(nothing, []);
    let gone = Page { after: Some(id("gone")), limit: 4 };
    let error = store.list(&of_ann, &gone).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::SessionNotFound);
}

/// A deleted or purged session is not listed by its tags any more. A session that is created later with the same id has
/// only its own tags.
pub async fn tags_go_with_their_session(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let purge = Purge { older_than: Duration::ZERO, statuses: vec![SessionStatus::Active] };
    let kept = Summary { status: SessionStatus::Completed, ..idle() };
    create_with(&store, "kept", &[("owner", "ann")], kept).await;
    for purges in [false, true] {
        create(&store, "s", &[("owner", "ann"), ("note", "secret value")]).await;
        let below = NewSession { tags: tags(&[("owner", "ann")]), ..child(&id("s"), &id("s")) };
        Writer::create_as(&store, below, first(&id("child"), "first")).await;
        assert_eq!(sorted(&store, &with_tag("owner", "ann")).await, "child kept s");
        match purges {
            true => assert_eq!(store.purge(&purge).await.unwrap(), 2),
            false => assert!(store.delete(&id("s")).await.unwrap()),
        }
        assert_eq!(sorted(&store, &with_tag("owner", "ann")).await, "kept");
        assert_eq!(sorted(&store, &with_tag("note", "secret value")).await, "");
        create(&store, "s", &[("owner", "bob")]).await;
        assert_eq!(sorted(&store, &with_tag("owner", "ann")).await, "kept");
        assert_eq!(sorted(&store, &with_tag("owner", "bob")).await, "s");
        store.delete(&id("s")).await.unwrap();
    }
}

/// A fork has exactly the tags that it was created with, not those of its original. Each is deleted alone.
pub async fn a_fork_has_tags_of_its_own(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let writer = create(&store, "original", &[("owner", "ann"), ("team", "red")]).await;
    for (name, own) in [("tagged", &[("owner", "bob"), ("kind", "fork")][..]), ("plain", &[])] {
        let fork = id(name);
        let new = NewSession { tags: tags(own), ..root_session(&fork) };
        let own = append(&fork, &writer.position, "own");
        let own = Append { summary: Some(idle()), ..own };
        for _ in 0..2 {
            let forked = store.fork(&writer.session, new.clone(), own.clone()).await.unwrap();
            assert!(matches!(forked, ForkOutcome::Created { .. }), "{forked:?}");
        }
        assert_eq!(store.head(&fork).await.unwrap().unwrap().created, new);
    }
    assert_eq!(sorted(&store, &with_tag("team", "red")).await, "original");
    assert_eq!(sorted(&store, &with_tag("owner", "bob").tag("kind", "fork")).await, "tagged");
    assert!(store.delete(&writer.session).await.unwrap());
    assert_eq!(sorted(&store, &with_tag("owner", "ann")).await, "");
    assert_eq!(sorted(&store, &with_tag("owner", "bob")).await, "tagged");
    assert!(store.delete(&id("tagged")).await.unwrap());
    assert_eq!(sorted(&store, &with_tag("owner", "bob")).await, "");
}

/// A creation that is repeated, or refused because the session exists, does not change the tags of the session.
pub async fn a_refused_creation_leaves_the_tags(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = create(&store, "s", &[("owner", "ann")]).await;
    let bobs = NewSession { tags: tags(&[("owner", "bob")]), ..root_session(&writer.session) };
    let second = first(&writer.session, "second");
    let outcome = store.create_session(bobs.clone(), second).await.unwrap();
    assert_eq!(outcome, CreateOutcome::Exists);
    create(&store, "other", &[]).await;
    let fork = append(&writer.session, &writer.position, "fork");
    let fork = Append { summary: Some(idle()), ..fork };
    assert_eq!(store.fork(&id("other"), bobs, fork).await.unwrap(), ForkOutcome::Exists);
    assert_eq!(sorted(&store, &with_tag("owner", "bob")).await, "");
    let again = NewSession { tags: tags(&[("owner", "ann")]), ..root_session(&writer.session) };
    let repeated = store.create_session(again, first(&writer.session, "first")).await.unwrap();
    assert!(matches!(repeated, CreateOutcome::Created { .. }), "{repeated:?}");
    let take = LeaseChange::Take(Duration::ZERO);
    writer.take(Append { summary: Some(running("r")), lease: take, ..writer.next("a") }).await;
    assert_eq!(sorted(&store, &with_tag("owner", "ann")).await, "s");
    assert_eq!(sorted(&store, &with_tag("owner", "bob")).await, "");
    assert_eq!(writer.head().await.created.tags, tags(&[("owner", "ann")]));
}

/// A session becomes visible together with its tags: another handle that finds its head also lists it by tag, and vice
/// versa. The same holds for a fork.
pub async fn a_session_and_its_tags_become_visible_together(harness: &impl StoreHarness) {
    const SESSIONS: usize = 40;
    let (store, other) = (harness.open().await, harness.open().await);
    let original = create(&store, "original", &[]).await;
    let started = Gate::opened();
    let looker = started.clone();
    let looking = tokio::spawn(async move {
        looker.pass().await;
        for number in 0..SESSIONS {
            seen(&other, number).await;
        }
    });
    started.reached().await;
    for number in 0..SESSIONS {
        let session = id(&format!("s{number}"));
        let value = number.to_string();
        let new = NewSession { tags: tags(&[("number", &value)]), ..root_session(&session) };
        if number % 4 < 2 {
            Writer::create_as(&store, new, first(&session, "first")).await;
        } else {
            let own = append(&session, &original.position, "own");
            let own = Append { summary: Some(idle()), ..own };
            let forked = store.fork(&original.session, new, own).await.unwrap();
            assert!(matches!(forked, ForkOutcome::Created { .. }), "{forked:?}");
        }
    }
    within(looking).await.unwrap();
}

/// Waits for a session by its head or by its tag, and asserts that the other finds it, too.
async fn seen(store: &Arc<dyn StateStore>, number: usize) {
    let session = id(&format!("s{number}"));
    let filter = with_tag("number", &number.to_string());
    let listed = async || !store.list(&filter, &Page::default()).await.unwrap().is_empty();
    let exists = async || store.head(&session).await.unwrap().is_some();
    loop {
        if number.is_multiple_of(2) {
            if exists().await {
                return assert!(listed().await, "{session} is not listed by its tag");
            }
        } else if listed().await {
            return assert!(exists().await, "{session} has no head");
        }
        tokio::task::yield_now().await;
    }
}

/// No character of a key or a value is special to the backend, a value may be empty, and similar texts are different.
pub async fn tags_are_any_text(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut texts = look_alikes();
    texts.retain(|text| text.len() <= MAX_TAG_KEY_BYTES);
    texts.extend(
        [
            "'; DROP TABLE sessions; --",
            "\"double\" 'single' `back`",
            "back\\slash %percent _under *star ?",
            "a/b:c|d{e}[f]$1 ?1 :name",
            "key=value",
            "{\"key\":\"value\"}",
            "\\u0000",
            "日本語 🦀 e\u{301} \u{202e}",
            "null",
            "0",
        ]
        .map(str::to_owned),
    );
    texts.sort();
    texts.dedup();
    for (number, text) in texts.iter().enumerate() {
        create(&store, &format!("s{number}"), &[("text", text), (text, "key"), ("t", "")]).await;
    }
    for (number, text) in texts.iter().enumerate() {
        let own = format!("s{number}");
        assert_eq!(
            names(&store, &with_tag("text", text)).await,
            std::slice::from_ref(&own),
            "{text:?}"
        );
        assert_eq!(
            names(&store, &with_tag(text, "key")).await,
            std::slice::from_ref(&own),
            "{text:?}"
        );
        let both = with_tag(text, "key").tag("text", text).tag("t", "");
        assert_eq!(names(&store, &both).await, [own], "{text:?}");
    }
    assert_eq!(names(&store, &with_tag("t", "")).await.len(), texts.len());
    // Control characters are allowed in values, except NUL.
    create(&store, "lines", &[("text", "one\r\n\ttwo\u{1}\u{7f}\u{85}")]).await;
    let lines = with_tag("text", "one\r\n\ttwo\u{1}\u{7f}\u{85}");
    assert_eq!(names(&store, &lines).await, ["lines"]);
    for number in 0..texts.len() {
        assert!(store.delete(&id(&format!("s{number}"))).await.unwrap());
    }
    assert_eq!(names(&store, &with_tag("t", "")).await.len(), 0);
}

/// As many and as long tags as the limits allow are stored, listed together, and deleted.
pub async fn the_longest_tags_are_listed(harness: &impl StoreHarness) {
    let store = harness.open().await;
    // Long texts without repetition, which a database cannot compress.
    let mut rng = crate::rng::Rng::of("tags");
    let mut text = |length: usize, number: usize| {
        let mut text = number.to_string();
        while text.len() < length {
            text.extend(format!("{:x}", rng.roll()).chars().take(length - text.len()));
        }
        text
    };
    let long: BTreeMap<_, _> = (0..MAX_TAGS)
        .map(|number| (text(MAX_TAG_KEY_BYTES, number), text(MAX_TAG_VALUE_BYTES, number)))
        .collect();
    let session = id(&"ü".repeat(helix_agents_core::id::MAX_ID_BYTES / 2));
    let new = NewSession { tags: long.clone(), ..root_session(&session) };
    Writer::create_as(&store, new.clone(), first(&session, "first")).await;
    create(&store, "other", &[("k", "v")]).await;
    assert_eq!(store.head(&session).await.unwrap().unwrap().created, new);
    for (key, value) in &long {
        assert_eq!(names(&store, &with_tag(key, value)).await, [session.as_str()]);
    }
    let mut filter = SessionFilter::new();
    filter.tags = long;
    assert_eq!(names(&store, &filter).await, [session.as_str()]);
    let key = filter.tags.keys().next_back().unwrap().clone();
    assert_eq!(names(&store, &filter.clone().tag(key, "another value")).await.len(), 0);
    assert!(store.delete(&session).await.unwrap());
    assert_eq!(names(&store, &filter).await.len(), 0);
}

/// Too many tags, tags that are too long, empty keys, and keys or values with characters that are not allowed fail with
/// `tag_invalid`. Nothing is written. A filter with such tags fails in the same way.
pub async fn tags_beyond_the_limits_are_refused(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let writer = create(&store, "s", &[("k", "v")]).await;
    let many: BTreeMap<_, _> =
        (0..=MAX_TAGS).map(|number| (number.to_string(), String::new())).collect();
    let long_key = "k".repeat(MAX_TAG_KEY_BYTES + 1);
    let long_value = "v".repeat(MAX_TAG_VALUE_BYTES + 1);
    let single = [
        ("", "v"),
        (long_key.as_str(), "v"),
        ("a\0b", "v"),
        ("a\nb", "v"),
        ("k", long_value.as_str()),
        ("k", "a\0b"),
    ];
    for refused in single.iter().map(|tag| tags(&[*tag])).chain([many]) {
        let session = id("new");
        let new = NewSession { tags: refused.clone(), ..root_session(&session) };
        let error = store.create_session(new.clone(), first(&session, "first")).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::TagInvalid, "{error}");
        let own = append(&session, &writer.position, "own");
        let own = Append { summary: Some(idle()), ..own };
        let error = store.fork(&writer.session, new, own).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::TagInvalid, "{error}");
        assert_eq!(store.head(&session).await.unwrap(), None);
        let mut filter = SessionFilter::new();
        filter.tags = refused;
        let error = store.list(&filter, &Page::default()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::TagInvalid, "{error}");
        let error = store.list_usage(&filter, &Page::default()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::TagInvalid, "{error}");
    }
    assert_eq!(names(&store, &SessionFilter::new()).await, ["s"]);
}
