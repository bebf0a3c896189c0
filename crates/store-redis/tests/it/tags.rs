//! The indexes of tags: their cost, their stale entries, and sessions of an older schema.

use helix_agents_core::store::{
    Append, CreateOutcome, Head, NewSession, Page, Position, SessionFilter, StateStore as _,
};
use helix_agents_store_redis::RedisStore;

use super::server::Server;
use super::support::{Keyspace, append, child_of, create, create_as, id, summary};

async fn create_tagged(store: &RedisStore, session: &str, tags: &[(&str, &str)]) {
    let tags = tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let new = NewSession { tags, ..child_of(None, &id(session)) };
    create_as(store, &id(session), new, summary()).await;
}

async fn listed(store: &RedisStore, filter: SessionFilter) -> Vec<String> {
    let heads = store.list(&filter, &Page::default()).await.unwrap();
    heads.into_iter().map(|head| head.session.to_string()).collect()
}

/// Returns how often the server ran a script. A head is read with one script.
fn scripts_run(keyspace: &Keyspace) -> u64 {
    let info: String =
        redis::cmd("INFO").arg("commandstats").query(&mut keyspace.server()).unwrap();
    let calls = |line: &str| -> Option<u64> {
        let line = line.strip_prefix("cmdstat_evalsha:calls=")?;
        line.split(',').next()?.parse().ok()
    };
    info.lines().find_map(calls).unwrap_or_default()
}

/// Other sessions cost nothing, however many there are, and of several tags the rarest is read.
#[tokio::test]
async fn a_list_by_tag_reads_the_sessions_with_the_rarest_tag_only() {
    let server = Server::start();
    let keyspace = server.keyspace();
    let store = keyspace.store().await;
    for number in 0..300 {
        let owner = if number % 100 == 0 { "ann" } else { "bob" };
        create_tagged(&store, &format!("s{number}"), &[("env", "test"), ("owner", owner)]).await;
    }
    let ann = SessionFilter::new().tag("owner", "ann");
    for (filter, expected) in [
        (ann.clone(), 3),
        (ann.clone().tag("env", "test"), 3),
        (ann.clone().tag("a", "nowhere"), 0),
        (SessionFilter::new().tag("owner", "eve"), 0),
    ] {
        let before = scripts_run(&keyspace);
        assert_eq!(listed(&store, filter.clone()).await.len(), expected, "{filter:?}");
        // Two more read the index: its entries, and that there are no more.
        assert!(scripts_run(&keyspace) - before <= 5, "{filter:?}");
    }
}

/// A creation that was cut off leaves an entry without a session, which a list by the tag removes.
#[tokio::test]
async fn stale_entries_of_a_tag_are_not_listed_and_go() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    create(&store, &id("s")).await;
    let key = format!("{}:{{key=value}}:tagged", keyspace.prefix());
    let mut server = keyspace.server();
    let (seconds, _): (u64, u64) = redis::cmd("TIME").query(&mut server).unwrap();
    let now = (seconds * 1000).to_string();
    // An earlier life, a creation that failed, and a session that is being created.
    for (time, member) in [("1", "s\0earlier"), ("1", "gone\0life"), (&*now, "new\0life")] {
        redis::cmd("ZADD").arg(&key).arg(time).arg(member).exec(&mut server).unwrap();
    }
    let tagged = SessionFilter::new().tag("key", "value");
    assert_eq!(listed(&store, tagged).await, ["s"]);
    let left: Vec<String> =
        redis::cmd("ZRANGE").arg(&key).arg(0).arg(-1).query(&mut server).unwrap();
    assert_eq!((left.len(), left.contains(&"new\0life".to_owned())), (2, true), "{left:?}");
}

/// A second creation removes its own entries and leaves those of the session.
#[tokio::test]
async fn a_refused_creation_leaves_no_index_of_its_tags() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    create_tagged(&store, "s", &[("owner", "ann")]).await;
    let new = NewSession {
        tags: [("owner".to_owned(), "bob".to_owned())].into(),
        ..child_of(None, &id("s"))
    };
    let second = append(&id("s"), &Position::start(), "second");
    let second = Append { summary: Some(summary()), ..second };
    assert_eq!(store.create_session(new, second).await.unwrap(), CreateOutcome::Exists);
    let keys = keyspace.keys();
    assert!(keys.iter().any(|key| key.ends_with(":{owner=ann}:tagged")), "{keys:?}");
    assert!(!keys.iter().any(|key| key.contains("bob")), "{keys:?}");
}

#[tokio::test]
async fn sessions_of_the_first_schema_are_listed_by_tag_once_the_store_was_opened() {
    let keyspace = Keyspace::new();
    let store = keyspace.store().await;
    for number in 0..600 {
        create(&store, &id(&format!("s{number}"))).await;
    }
    let mut server = keyspace.server();
    let tagged = format!("{}:{{key=value}}:tagged", keyspace.prefix());
    let schema = format!("{}:{{index}}:schema", keyspace.prefix());
    redis::cmd("DEL").arg(&tagged).exec(&mut server).unwrap();
    redis::cmd("SET").arg(&schema).arg(1).exec(&mut server).unwrap();
    let filter = SessionFilter::new().tag("key", "value");
    assert!(listed(&store, filter.clone()).await.is_empty());
    let inspection = keyspace.builder().inspect().await.unwrap();
    assert_eq!((inspection.schema, inspection.newest_schema), (Some(1), 2));

    let store = keyspace.store().await;
    let whole = Page { after: None, limit: 1000 };
    let all = store.list(&SessionFilter::new(), &whole).await.unwrap();
    let found = store.list(&filter, &whole).await.unwrap();
    let names =
        |heads: &[Head]| -> Vec<_> { heads.iter().map(|head| head.session.clone()).collect() };
    assert_eq!((names(&found), found.len()), (names(&all), 600));
    assert_eq!(keyspace.builder().inspect().await.unwrap().schema, Some(2));
}
