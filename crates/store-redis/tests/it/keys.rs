//! Tests of the keys on the server: ids of any kind, leftovers of deletions, damaged data and exhausted memory.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;

use helix_agents_conformance::ids::batch_id;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::id::RunId;
use helix_agents_core::store::{
    Append, ForkOutcome, LeaseChange, Page, Position, Purge, SessionFilter, SessionStatus,
    StateStore as _, Summary,
};
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::stream::StreamManagerExt as _;
use helix_agents_store_redis::RedisStore;

use super::server::Server;
use super::support::{
    Keyspace, add, append, child_of, create, create_as, id, ids, streams, summary, text,
};

#[tokio::test]
async fn ids_that_look_like_keys_do_not_meet() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    let prefix = keyspace.prefix();
    let hostile = [
        "{".to_owned(),
        "}".to_owned(),
        "{}".to_owned(),
        "}{".to_owned(),
        "a}:log{".to_owned(),
        "index".to_owned(),
        "{index}:sessions".to_owned(),
        format!("{prefix}:{{index}}:runs"),
        "%7B".to_owned(),
        "%".to_owned(),
        "a:log".to_owned(),
        "a".to_owned(),
        "'\"\\ KEYS[1] ]] -- redis.call('FLUSHALL')".to_owned(),
        "日本語 🦀 e\u{301} \u{202e}".to_owned(),
    ];
    for (number, text) in hostile.iter().enumerate() {
        let session = id(text);
        let mut position = create(&store, &session).await;
        add(&store, &session, &mut position, &number.to_string()).await;
        streams(&store)
            .append_chunks(batch_id(), &session, None, vec![super::support::text(&session, text)])
            .await
            .unwrap();
    }
    for (number, text) in hostile.iter().enumerate() {
        assert_eq!(ids(&store, &id(text)).await, ["first", &number.to_string()], "{text}");
        assert_eq!(streams(&store).info(&id(text)).await.unwrap().last_seq, 1, "{text}");
    }
    let all = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(all.len(), hostile.len());
}

fn waiting(run: Option<&str>, wake_at: Option<i64>) -> Summary {
    Summary { run: run.map(RunId::from), wake_at: wake_at.map(Timestamp), ..summary() }
}

#[tokio::test]
async fn deleting_leaves_no_key_behind() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    let (root, child, fork) = (id("root"), id("child"), id("fork"));
    let mut position =
        create_as(&store, &root, child_of(None, &root), waiting(Some("r"), None)).await;
    add(&store, &root, &mut position, "a").await;
    create_as(&store, &child, child_of(Some(&root), &root), waiting(None, Some(5))).await;
    let first =
        Append { summary: Some(waiting(Some("f"), Some(7))), ..append(&fork, &position, "f") };
    let forked = store.fork(&root, child_of(None, &fork), first).await.unwrap();
    assert!(matches!(forked, ForkOutcome::Created { .. }));
    add(&store, &root, &mut position, "not shared").await;

    assert!(store.delete(&root).await.unwrap());
    assert_eq!(ids(&store, &fork).await, ["first", "a", "f"]);
    let kept = keyspace.keys();
    assert!(kept.iter().any(|key| key.contains("{root}:log:")), "{kept:?}");
    assert!(store.delete(&fork).await.unwrap());
    assert_eq!(keyspace.keys(), [format!("{}:{{index}}:schema", keyspace.prefix())]);
}

#[tokio::test]
async fn unshared_appends_of_a_deleted_log_are_removed() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    let (session, fork) = (id("s"), id("fork"));
    let mut position = create(&store, &session).await;
    let shared = position.clone();
    for number in 0..100 {
        add(&store, &session, &mut position, &format!("a{number}")).await;
    }
    let first = Append { summary: Some(summary()), ..append(&fork, &shared, "f") };
    store.fork(&session, child_of(None, &fork), first).await.unwrap();
    store.delete(&session).await.unwrap();
    let kept = keyspace.keys().into_iter().find(|key| key.contains("{s}:log:")).unwrap();
    let length: u64 = redis::cmd("XLEN").arg(kept).query(&mut keyspace.server()).unwrap();
    assert_eq!(length, 1);
    assert_eq!(ids(&store, &fork).await, ["first", "f"]);
}

/// An index entry is written before the data that it refers to, so a crash can leave it stale. It is never missing.
#[tokio::test]
async fn stale_entries_of_indexes_are_not_listed_and_go() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    let session = id("s");
    let mut position = create(&store, &session).await;
    for number in 0..3 {
        add(&store, &session, &mut position, &format!("a{number}")).await;
    }
    let key = |name: &str| format!("{}:{{index}}:{name}", keyspace.prefix());
    let mut server = keyspace.server();
    let stale = ["s\u{0}2\u{0}never taken", "gone\u{0}1\u{0}x"];
    let coming = "s\u{0}5\u{0}on its way";
    for member in stale.iter().chain([&coming]) {
        for name in ["runs", "wakes"] {
            redis::cmd("ZADD").arg(key(name)).arg(0).arg(member).exec(&mut server).unwrap();
        }
    }
    // A creation that failed, a life before this one, and a session that is being created.
    let (seconds, _): (u64, u64) = redis::cmd("TIME").query(&mut server).unwrap();
    let now = (seconds * 1000).to_string();
    for (time, member) in [("1", "gone\0life"), ("1", "s\0earlier"), (&*now, "new\u{0}life")] {
        redis::cmd("ZADD").arg(key("sessions")).arg(time).arg(member).exec(&mut server).unwrap();
        let run = format!("-{time}");
        redis::cmd("ZADD")
            .arg(key("runs"))
            .arg(run)
            .arg("new\u{0}1\u{0}x")
            .exec(&mut server)
            .unwrap();
    }
    let lists = [SessionFilter::new().lease_expired(), SessionFilter::new().wake_due()];
    for filter in &lists {
        assert!(store.list(filter, &Page::default()).await.unwrap().is_empty());
    }
    let all = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
    assert_eq!(all.len(), 1);
    let members = |server: &mut redis::Connection, name: &str| -> Vec<String> {
        redis::cmd("ZRANGE").arg(key(name)).arg(0).arg(-1).query(server).unwrap()
    };
    let sessions = members(&mut server, "sessions");
    assert_eq!((sessions.len(), sessions.contains(&"new\u{0}life".to_owned())), (2, true));
    assert!(members(&mut server, "runs").contains(&"new\u{0}1\u{0}x".to_owned()));
    for name in ["runs", "wakes"] {
        let left = members(&mut server, name);
        assert!(!left.iter().any(|it| stale.contains(&&**it)), "{left:?}");
        assert!(left.contains(&coming.to_owned()), "it may still be taken: {left:?}");
    }
}

/// A creation writes the entries of a session and then the session. The tree of a root that does not exist is looked up by
/// no list of its own, so the look at all sessions clears it.
#[tokio::test]
async fn a_failed_root_creation_leaves_no_tree() {
    let purge = Purge { older_than: Duration::ZERO, statuses: vec![SessionStatus::Completed] };
    for by_purge in [false, true] {
        let keyspace = Keyspace::new();
        let store = keyspace.store().await;
        create(&store, &id("s")).await;
        let mut server = keyspace.server();
        let (seconds, _): (u64, u64) = redis::cmd("TIME").query(&mut server).unwrap();
        let now = (seconds * 1000).to_string();
        for (session, time) in [("died", "1"), ("young", &*now)] {
            let member = format!("{session}\0life");
            for key in ["{index}:sessions".to_owned(), format!("{{{session}}}:tree")] {
                let key = format!("{}:{key}", keyspace.prefix());
                redis::cmd("ZADD").arg(key).arg(time).arg(&member).exec(&mut server).unwrap();
            }
        }
        if by_purge {
            assert_eq!(store.purge(&purge).await.unwrap(), 0);
        } else {
            let all = store.list(&SessionFilter::default(), &Page::default()).await.unwrap();
            assert_eq!(all.len(), 1);
        }
        let trees: Vec<_> =
            keyspace.keys().into_iter().filter(|key| key.ends_with(":tree")).collect();
        let expected = ["s", "young"].map(|it| format!("{}:{{{it}}}:tree", keyspace.prefix()));
        assert_eq!(trees, expected, "a session that is on its way stays, by purge: {by_purge}");
    }
}

/// Chunks outlive their time; what tells an old cursor from a new one does not.
#[tokio::test]
async fn an_expired_stream_continues_its_numbers() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    let (session, streams) = (id("s"), streams(&store));
    let write = async |delta: &str| {
        let chunks = vec![text(&session, delta), text(&session, delta)];
        streams.append_chunks(batch_id(), &session, None, chunks).await.unwrap()
    };
    assert_eq!(write("a").await, 2);
    let mut server = keyspace.server();
    let chunks = format!("{}:{{s}}:chunks", keyspace.prefix());
    redis::cmd("DEL").arg(chunks).exec(&mut server).unwrap();
    let info = streams.info(&session).await.unwrap();
    assert_eq!((info.first_seq, info.last_seq), (0, 2));
    let mut early = streams.read(&session, 1).await.unwrap();
    let told = early.next().await.unwrap().unwrap();
    assert_eq!((told.seq, &told.chunk.kind), (2, &ChunkKind::StreamResync));
    for number in 2..5 {
        assert_eq!(write("b").await, 2 * number);
    }
    let info = streams.info(&session).await.unwrap();
    assert_eq!((info.first_seq, info.last_seq), (3, 8));
    let mut late = streams.read(&session, 2).await.unwrap();
    let told = late.next().await.unwrap().unwrap();
    assert_eq!((told.seq, &told.chunk.kind), (2, &ChunkKind::StreamResync));
    for reader in [&mut early, &mut late] {
        assert_eq!(reader.next().await.unwrap().unwrap().seq, 3);
    }
}

#[tokio::test]
async fn indexes_grow_with_what_runs_and_waits_and_not_with_what_ran() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    let session = id("s");
    let mut position = create(&store, &session).await;
    for number in 0..5_i64 {
        let run = format!("r{number}");
        let steps = [
            (waiting(Some(&run), None), LeaseChange::Take(Duration::from_secs(30))),
            (waiting(Some(&run), None), LeaseChange::Keep),
            (waiting(None, Some(number)), LeaseChange::Clear),
        ];
        for (step, (summary, lease)) in steps.into_iter().enumerate() {
            let id = format!("{number}.{step}");
            let append =
                Append { summary: Some(summary), lease, ..append(&session, &position, &id) };
            store.append(append).await.unwrap();
            position = Position { version: position.version + 1, append: id.as_str().into() };
        }
    }
    let count = |name: &str| -> u64 {
        let key = format!("{}:{{index}}:{name}", keyspace.prefix());
        redis::cmd("ZCARD").arg(key).query(&mut keyspace.server()).unwrap()
    };
    assert_eq!((count("runs"), count("wakes")), (0, 1));
    let due = SessionFilter::new().wake_due();
    assert_eq!(store.list(&due, &Page::default()).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_the_store_did_not_write_is_damage() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    let damages: [(&str, &[&str]); 5] = [
        ("XDEL", &["{s}:log", "2-0"]),
        ("DEL", &["{s}:log"]),
        ("SET", &["{s}:log", "a picture"]),
        ("HSET", &["{s}:head", "status", "asleep"]),
        ("SET", &["{s}:head", "a picture"]),
    ];
    for (command, args) in damages {
        let session = id("s");
        let mut position = create(&store, &session).await;
        add(&store, &session, &mut position, "a").await;
        add(&store, &session, &mut position, "b").await;
        let mut damage = redis::cmd(command);
        damage.arg(format!("{}:{}", keyspace.prefix(), args[0])).arg(&args[1..]);
        damage.exec(&mut keyspace.server()).unwrap();
        let read = store.read_log(&session, 0, u32::MAX).await.map(drop);
        let head = store.head(&session).await.map(drop);
        let error = read.and(head).unwrap_err();
        assert_eq!(error.code(), ErrorCode::StoreCorrupt, "{command} {args:?}: {error}");
        for name in ["head", "log"] {
            let key = format!("{}:{{s}}:{name}", keyspace.prefix());
            redis::cmd("DEL").arg(key).exec(&mut keyspace.server()).unwrap();
        }
    }
}

#[tokio::test]
async fn a_server_without_memory_refuses_appends_and_keeps_what_it_has() {
    let server = Server::start();
    let keyspace = server.keyspace();
    let store = keyspace.store().await;
    let session = id("s");
    let mut position = create(&store, &session).await;
    let mut connection = keyspace.server();
    let limit = |connection: &mut redis::Connection, bytes: &str| {
        redis::cmd("CONFIG").arg("SET").arg("maxmemory").arg(bytes).exec(connection).unwrap();
    };
    limit(&mut connection, "1");
    let error = store.append(append(&session, &position, "a")).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreFull, "{error}");
    let written =
        streams(&store).append_chunks(batch_id(), &session, None, vec![text(&session, "x")]).await;
    assert_eq!(written.unwrap_err().code(), ErrorCode::StoreFull);
    assert_eq!(ids(&store, &session).await, ["first"]);
    limit(&mut connection, "0");
    add(&store, &session, &mut position, "a").await;
}

#[tokio::test]
async fn a_long_log_of_long_appends_is_read_in_parts() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    let session = id("s");
    let mut position = create(&store, &session).await;
    let body = Bytes::from(vec![7; 10 * 1024 * 1024]);
    for number in 0..6 {
        let id = number.to_string();
        let append = Append { body: body.clone(), ..append(&session, &position, &id) };
        store.append(append).await.unwrap();
        position = Position { version: position.version + 1, append: id.as_str().into() };
    }
    let log = store.read_log(&session, 1, u32::MAX).await.unwrap();
    assert_eq!(log.len(), 6);
    assert!(log.iter().all(|append| append.body == body));
}

async fn ended(store: &RedisStore, name: &str, status: SessionStatus) {
    let session = id(name);
    let summary = Summary { status, ..summary() };
    create_as(store, &session, child_of(None, &session), summary).await;
    streams(store)
        .append_chunks(batch_id(), &session, None, vec![text(&session, "x")])
        .await
        .unwrap();
}

#[tokio::test]
async fn old_ended_sessions_are_deleted_with_their_streams() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    ended(&store, "done", SessionStatus::Completed).await;
    ended(&store, "failed", SessionStatus::Failed).await;
    ended(&store, "active", SessionStatus::Active).await;
    let child = id("child");
    create_as(&store, &child, child_of(Some(&id("done")), &id("done")), summary()).await;

    let old =
        Purge { older_than: Duration::from_secs(60), statuses: vec![SessionStatus::Completed] };
    assert_eq!(store.purge(&old).await.unwrap(), 0, "nothing is that old");
    let now = Purge { older_than: Duration::ZERO, ..old };
    assert_eq!(store.purge(&now).await.unwrap(), 2);
    assert_eq!(store.purge(&now).await.unwrap(), 0);
    for (name, is_there) in [("done", false), ("child", false), ("failed", true), ("active", true)]
    {
        assert_eq!(store.head(&id(name)).await.unwrap().is_some(), is_there, "{name}");
        let keys = keyspace.keys();
        let tag = format!("{{{name}}}");
        assert_eq!(keys.iter().any(|key| key.contains(&tag)), is_there, "{name}: {keys:?}");
    }
}

#[tokio::test]
async fn a_tree_with_an_active_run_is_not_deleted() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    ended(&store, "done", SessionStatus::Completed).await;
    let child = id("child");
    let position =
        create_as(&store, &child, child_of(Some(&id("done")), &id("done")), summary()).await;
    let begin = Append {
        summary: Some(waiting(Some("r"), None)),
        lease: LeaseChange::Take(Duration::from_secs(60)),
        ..append(&child, &position, "begin")
    };
    store.append(begin).await.unwrap();
    let now = Purge { older_than: Duration::ZERO, statuses: vec![SessionStatus::Completed] };
    assert_eq!(store.purge(&now).await.unwrap(), 0);
    assert!(store.head(&child).await.unwrap().is_some());
}

#[tokio::test]
async fn the_chunks_of_a_stream_are_forgotten_some_time_after_the_last_one() {
    let keyspace = Keyspace::new();
    let store = keyspace.builder().stream_ttl(Duration::from_secs(100)).open().await.unwrap();
    let session = id("s");
    streams(&store)
        .append_chunks(batch_id(), &session, None, vec![text(&session, "x")])
        .await
        .unwrap();
    let key = |name: &str| format!("{}:{{s}}:{name}", keyspace.prefix());
    let left = |name: &str| -> i64 {
        redis::cmd("TTL").arg(key(name)).query(&mut keyspace.server()).unwrap()
    };
    assert!((90..=100).contains(&left("chunks")), "{} s", left("chunks"));
    assert_eq!(left("feed"), -1, "numbers and marks stay with the session");
}

/// Whatever the append does to the lease: lists have to find what runs and what waits.
#[tokio::test]
async fn a_run_or_a_wait_that_begins_with_any_append_is_listed() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    let filters = [
        (waiting(Some("r"), None), SessionFilter::new().lease_expired()),
        (waiting(None, Some(1)), SessionFilter::new().wake_due()),
    ];
    for (number, (summary, filter)) in filters.into_iter().enumerate() {
        let session = id(&format!("s{number}"));
        let mut position = create(&store, &session).await;
        add(&store, &session, &mut position, "a").await;
        let begin = Append { summary: Some(summary), ..append(&session, &position, "begin") };
        store.append(begin).await.unwrap();
        let listed = store.list(&filter, &Page::default()).await.unwrap();
        assert_eq!(listed.iter().map(|it| &it.session).collect::<Vec<_>>(), [&session]);
    }
}

/// Returns how often the server changed a sorted set. All indexes are sorted sets.
fn changes_of_indexes(keyspace: &Keyspace) -> u64 {
    let info: String =
        redis::cmd("INFO").arg("commandstats").query(&mut keyspace.server()).unwrap();
    let calls = |line: &str| -> Option<u64> {
        let name =
            ["cmdstat_zadd:", "cmdstat_zrem:"].iter().find_map(|it| line.strip_prefix(it))?;
        name.strip_prefix("calls=")?.split(',').next()?.parse().ok()
    };
    info.lines().filter_map(calls).sum()
}

/// Each change of one would be a round trip and a write to the disk more.
#[tokio::test]
async fn an_append_in_the_middle_of_a_run_changes_no_index() {
    let server = Server::start();
    let keyspace = server.keyspace();
    let store = keyspace.store().await;
    let session = id("s");
    let mut position = create(&store, &session).await;
    let mut changes = Vec::new();
    for step in ["begin", "a", "b"] {
        let step = Append {
            summary: Some(waiting(Some("r"), None)),
            lease: LeaseChange::Take(Duration::from_secs(30)),
            ..append(&session, &position, step)
        };
        position = Position { version: position.version + 1, append: step.id.clone() };
        let before = changes_of_indexes(&keyspace);
        store.append(step).await.unwrap();
        changes.push(changes_of_indexes(&keyspace) - before);
    }
    assert_eq!(changes, [1, 0, 0]);
}
