//! Scenarios for the smallest and largest values, and for refused values.

use bytes::Bytes;

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::{AppendId, MAX_ID_BYTES, RunId};
use helix_agents_core::store::{
    Append, MAX_APPEND_BYTES, NewSession, Page, Position, SessionFilter, Summary,
};

use super::StoreHarness;
use super::support::{LONG, Writer, first, id, idle, ids, root_session, running};

/// No character of an id is special to the backend.
pub async fn ids_are_any_text(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let long = "ü".repeat(MAX_ID_BYTES / 2);
    let texts = [
        "with space",
        "'; DROP TABLE sessions; --",
        "\"double\" 'single' `back`",
        "back\\slash %percent _under *star ?",
        "a/b:c|d{e}[f]$1 ?1 :name",
        "日本語 🦀 e\u{301}",
        "null",
        "0",
        &long,
    ];
    for text in texts {
        let session = id(text);
        let new = NewSession {
            agent: text.into(),
            root: session.clone(),
            parent: None,
            tags: [("text".to_owned(), text.to_owned())].into(),
        };
        let first = Append {
            run: Some(RunId::from(text)),
            summary: Some(running(text)),
            ..first(&session, text)
        };
        let mut writer = Writer::create_as(&store, new.clone(), first).await;
        writer.add("second").await;

        let head = writer.head().await;
        assert_eq!((&head.session, &head.created, &head.summary), (&session, &new, &running(text)));
        let log = writer.log().await;
        assert_eq!((&log[0].id, &log[0].run), (&AppendId::from(text), &Some(RunId::from(text))));
        assert_eq!(log[1].id.as_str(), "second");
        assert!(store.renew(&session, &RunId::from(text), LONG).await.unwrap().renewed);
        let by_agent = SessionFilter::new().agent(text).root(session.clone());
        assert_eq!(store.list(&by_agent, &Page::default()).await.unwrap().len(), 1);
    }
    let all = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(all.len(), texts.len());
    for text in texts {
        assert!(store.delete(&id(text)).await.unwrap());
    }
}

/// A session cannot be created or forked with an empty id, an id with control characters, or an id that is too long:
/// both fail with `id_invalid`. Reads and deletions treat such a session as missing.
pub async fn ids_that_no_session_has_are_refused(harness: &impl StoreHarness) {
    let store = harness.open().await;
    Writer::create(&store, "s").await;
    let long = "x".repeat(MAX_ID_BYTES + 1);
    for text in ["", "a\0b", "\r\n", "\u{85}", &long, &"x".repeat(10_000)] {
        let session = id(text);
        let refused = store.create_session(root_session(&session), first(&session, "first")).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::IdInvalid, "{text:?}");
        let expected = Position { version: 1, append: "first".into() };
        let branch = Append { expected, ..first(&session, "branch") };
        let refused = store.fork(&id("s"), root_session(&session), branch).await;
        assert_eq!(refused.unwrap_err().code(), ErrorCode::IdInvalid, "{text:?}");
        assert_eq!(store.head(&session).await.unwrap(), None, "{text:?}");
        assert!(!store.delete(&session).await.unwrap(), "{text:?}");
        let read = store.read_log(&session, 0, 1).await;
        assert_eq!(read.unwrap_err().code(), ErrorCode::SessionNotFound, "{text:?}");
    }
    let all = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(all.len(), 1);
}

/// Invalid ids of appends, runs, and parent and root sessions fail with `id_invalid` in `append`, `create_session` and
/// `fork`. Nothing is written.
pub async fn other_ids_are_refused_by_the_same_rule(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let writer = Writer::create(&store, "s").await;
    let before = writer.head().await;
    let new = id("new");
    let long = "x".repeat(MAX_ID_BYTES + 1);
    for text in ["", "a\0b", "\r\n", &long, &"x".repeat(10_000)] {
        let running = Summary { run: Some(RunId::from(text)), ..idle() };
        let appends = [
            writer.next(text),
            Append { run: Some(RunId::from(text)), ..writer.next("a") },
            Append { summary: Some(running), ..writer.next("a") },
        ];
        for append in appends {
            let refused = store.append(append.clone()).await;
            assert_eq!(refused.unwrap_err().code(), ErrorCode::IdInvalid, "{text:?}");
            let first = Append {
                session: new.clone(),
                expected: Position::start(),
                summary: append.summary.clone().or(Some(idle())),
                ..append.clone()
            };
            let refused = store.create_session(root_session(&new), first).await;
            assert_eq!(refused.unwrap_err().code(), ErrorCode::IdInvalid, "{text:?}");
            let own = Append {
                session: new.clone(),
                summary: append.summary.clone().or(Some(idle())),
                ..append
            };
            let refused = store.fork(&writer.session, root_session(&new), own).await;
            assert_eq!(refused.unwrap_err().code(), ErrorCode::IdInvalid, "{text:?}");
        }
        let above = [
            NewSession { root: id(text), ..root_session(&new) },
            NewSession { parent: Some(id(text)), ..root_session(&new) },
        ];
        for above in above {
            let refused = store.create_session(above.clone(), first(&new, "first")).await;
            assert_eq!(refused.unwrap_err().code(), ErrorCode::IdInvalid, "{text:?}");
            let own = Append { summary: Some(idle()), ..writer.next("own") };
            let own = Append { session: new.clone(), ..own };
            let refused = store.fork(&writer.session, above, own).await;
            assert_eq!(refused.unwrap_err().code(), ErrorCode::IdInvalid, "{text:?}");
        }
    }
    assert_eq!(store.head(&new).await.unwrap(), None);
    assert_eq!(writer.head().await, before);
}

/// Large versions, event counts, schema numbers, pending counts and wake-up times are read back as they were written.
pub async fn the_largest_numbers_come_back(harness: &impl StoreHarness) {
    const MANY: u32 = 3_000_000_000;
    let store = harness.open().await;
    let session = id("s");
    let wake_at = Some(Timestamp(7_000_000_000_000));
    let summary = Summary { pending: u32::MAX, wake_at, ..idle() };
    let own = Append {
        schema: u16::MAX,
        count: 70_000,
        summary: Some(summary.clone()),
        ..first(&session, "first")
    };
    let mut writer = Writer::create_as(&store, root_session(&session), own).await;
    let next = Append { schema: 256, count: MANY, ..writer.next("many") };
    writer.take(next).await;
    let log = writer.log().await;
    let numbers: Vec<_> =
        log.iter().map(|append| (append.first, append.count, append.schema)).collect();
    assert_eq!(numbers, [(1, 70_000, u16::MAX), (70_001, MANY, 256)]);
    let head = writer.head().await;
    assert_eq!((head.position.version, head.summary), (70_000 + u64::from(MANY), summary));
    writer.add("after").await;
    let rest = store.read_log(&session, 70_000, 10).await.unwrap();
    assert_eq!(ids(&rest), ["many", "after"]);
}

/// No byte of a body is special to the backend. A body may be empty.
pub async fn bodies_are_any_bytes(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let bodies = [
        Bytes::new(),
        Bytes::from_iter(0..=255_u8),
        Bytes::from_static(&[0, 0, 0]),
        Bytes::from_static(b"\xff\xfe not UTF-8 \xc3\x28"),
        Bytes::from_static("'\"\\ \r\n 🦀".as_bytes()),
    ];
    for (number, body) in bodies.iter().enumerate() {
        let next = Append { body: body.clone(), ..writer.next(&format!("a{number}")) };
        writer.take(next).await;
    }
    let log = writer.log().await;
    assert_eq!(log.iter().skip(1).map(|append| append.body.clone()).collect::<Vec<_>>(), bodies);
}

/// A body of ten megabytes is read back unchanged. A tool result may contain a long document.
pub async fn a_body_of_ten_megabytes_comes_back_unchanged(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let body: Bytes = (0..10_000_000_u32)
        .map(|number| number.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    let large = Append { body: body.clone(), ..writer.next("large") };
    writer.take(large).await;
    writer.add("small").await;
    let log = writer.log().await;
    assert!(log[1].body == body, "the body came back changed");
    assert_eq!(log[2].id.as_str(), "small");
}

/// A session with 50,000 events can be read, forked and deleted like any other. Its fork keeps the shared appends.
pub async fn a_session_of_fifty_thousand_events_is_like_any_other(harness: &impl StoreHarness) {
    const EACH: u32 = 25;
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    for number in 0..50_000 / EACH {
        let next = Append { count: EACH, ..writer.next(&number.to_string()) };
        writer.take(next).await;
    }
    let log = writer.log().await;
    assert_eq!((log.len(), log.last().unwrap().version()), (2001, 50_001));
    assert_eq!(writer.head().await.position.version, 50_001);
    let last = store.read_log(&writer.session, 50_001 - u64::from(EACH), 10).await.unwrap();
    assert_eq!(ids(&last), ["1999"]);

    let fork = id("fork");
    let first = Append { expected: log[1000].position(), ..first(&fork, "f") };
    store.fork(&writer.session, root_session(&fork), first).await.unwrap();
    assert!(store.delete(&writer.session).await.unwrap());
    let log = store.read_log(&fork, 0, u32::MAX).await.unwrap();
    assert_eq!((log.len(), log.last().unwrap().version()), (1002, 25_002));
}

/// An append of exactly `MAX_APPEND_BYTES` is accepted. One more byte fails with `too_large`, and nothing is written.
pub async fn an_append_over_the_limit_is_too_large_and_writes_nothing(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let mut writer = Writer::create(&store, "s").await;
    let before = writer.head().await;
    let over = Append { body: vec![7; MAX_APPEND_BYTES + 1].into(), ..writer.next("over") };
    let error = store.append(over).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert_eq!(writer.head().await, before);
    assert_eq!(writer.ids().await, ["first"]);

    let at = Append { body: vec![7; MAX_APPEND_BYTES].into(), ..writer.next("at") };
    writer.take(at).await;
    let body = &writer.log().await[1].body;
    assert!(body.len() == MAX_APPEND_BYTES && body.iter().all(|byte| *byte == 7));
}

/// A first append that is larger than `MAX_APPEND_BYTES` fails with `too_large`, and the session is not created.
pub async fn a_first_append_over_the_limit_creates_nothing(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let session = id("s");
    let over = Append { body: vec![7; MAX_APPEND_BYTES + 1].into(), ..first(&session, "over") };
    let error = store.create_session(root_session(&session), over).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert_eq!(store.head(&session).await.unwrap(), None);
}

/// An append without events fails with `input_invalid`, because it would have no position in the log. This also holds
/// for a first append, and nothing is written.
pub async fn an_append_of_no_events_is_refused(harness: &impl StoreHarness) {
    let store = harness.open().await;
    let writer = Writer::create(&store, "s").await;
    let empty = Append { count: 0, ..writer.next("empty") };
    let error = store.append(empty).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InputInvalid);
    assert_eq!(writer.ids().await, ["first"]);

    let session = id("other");
    let empty = Append { count: 0, ..first(&session, "empty") };
    let error = store.create_session(root_session(&session), empty).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::InputInvalid);
    assert_eq!(store.head(&session).await.unwrap(), None);
}
