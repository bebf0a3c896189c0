//! What is kept of sessions, and when it is of use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helix_agents_core::agent::Agent;
use helix_agents_core::clock::IdSource;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{
    Durability, Journal, JournalConfig, MAX_CACHED_SESSIONS, Outside, Session, SessionCache,
    SessionReader, StartRun, catch_up, execute_events, load, queue_message,
};
use helix_agents_core::store::{Head, NewSession, StateStore};
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::faults::FaultStore;
use helix_agents_testkit::normalise;

use crate::support::Counting;

fn session() -> SessionId {
    SessionId::from("s")
}

/// Ids that no other source gives.
fn fresh() -> Counting {
    static SOURCES: AtomicU64 = AtomicU64::new(0);
    Counting::from(SOURCES.fetch_add(1, Ordering::Relaxed) << 32)
}

/// A session that begins with this message. Its run has an id that people may choose again.
async fn begun(store: &MemoryStore, words: &str) -> Session {
    let agent = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    let (agent, run) = (agent.build().unwrap().erased(), RunId::from("chosen"));
    let (fold, begin) = (Session::new(session()), StartRun::new(run.clone(), "parts", 0));
    let input = words.into();
    let events = execute_events(&fold, &agent, &begin, &input, &BTreeMap::new(), false).unwrap();
    let parts = JournalConfig {
        store: Arc::new(store.clone()),
        ids: Arc::new(fresh()),
        lease: Duration::from_secs(60),
        durability: Durability::default(),
    };
    let new = NewSession {
        agent: Arc::clone(agent.name()),
        root: session(),
        parent: None,
        tags: BTreeMap::new(),
    };
    let mut journal = Journal::new(parts, agent, fold, run);
    journal.create(new, events).await.unwrap();
    journal.into_session().unwrap()
}

/// Makes the log longer by so many messages, which no run has written.
async fn lengthen(store: &MemoryStore, messages: usize) {
    let ids: &dyn IdSource = &fresh();
    for _ in 0..messages {
        let outside = Outside { store, ids, folds: None };
        let message = UserMessage::new("and then");
        queue_message(outside, &session(), &ids.request(), &message, None).await.unwrap();
    }
}

async fn head(store: &MemoryStore) -> Head {
    store.head(&session()).await.unwrap().unwrap()
}

/// A fold is kept of a log with so many messages after the first, and a session of the same id has a log
/// with so many: what is found is the new one's.
async fn is_found_anew(kept: usize, new: usize) {
    for alone in [true, false] {
        let (store, folds) = (MemoryStore::new(), SessionCache::default());
        let mut fold = begun(&store, "old").await;
        lengthen(&store, kept).await;
        catch_up(&store, &mut fold).await.unwrap();
        folds.keep(fold);
        store.delete(&session()).await.unwrap();
        begun(&store, "new").await;
        lengthen(&store, new).await;

        let head = head(&store).await;
        let found = folds.get(&store, &head, alone).await.unwrap();
        assert_eq!(normalise::transcript(found.transcript()), "user \"new\"\n", "alone: {alone}");
        assert_eq!(*found.position(), head.position, "alone: {alone}");
        assert_eq!(found.queued_messages().len(), new, "alone: {alone}");
    }
}

#[tokio::test]
async fn a_fold_is_not_used_for_a_log_that_began_anew_and_is_as_long() {
    is_found_anew(0, 0).await;
    is_found_anew(2, 2).await;
}

/// What came since would go on from the old one, too.
#[tokio::test]
async fn a_fold_is_not_used_for_a_log_that_began_anew_and_is_longer() {
    is_found_anew(0, 1).await;
    is_found_anew(1, 3).await;
}

#[tokio::test]
async fn a_fold_is_not_used_for_a_log_that_began_anew_and_is_shorter() {
    is_found_anew(1, 0).await;
    is_found_anew(3, 1).await;
}

#[tokio::test]
async fn a_fold_takes_in_what_came_since() {
    let (store, folds) = (MemoryStore::new(), SessionCache::default());
    folds.keep(begun(&store, "go").await);
    for _ in 0..2 {
        lengthen(&store, 1).await;
        let found = folds.get(&store, &head(&store).await, false).await.unwrap();
        let known = load(&store, &session()).await.unwrap();
        assert_eq!(found.position(), known.position());
        assert_eq!(found.queued_messages(), known.queued_messages());
    }
}

#[tokio::test]
async fn what_was_seen_is_not_read_again() {
    let (inner, folds) = (MemoryStore::new(), SessionCache::default());
    begun(&inner, "go").await;
    lengthen(&inner, 50).await;
    let store = FaultStore::new(Arc::new(inner.clone()));
    let logs = SessionReader { store: &store, folds: Some(&folds) };
    logs.load(&session()).await.unwrap();
    let first = store.appends_read();
    assert!(first > 50, "{first}");
    logs.load(&session()).await.unwrap();
    logs.look(&session()).await.unwrap().unwrap();
    assert_eq!(store.appends_read(), first, "nothing is new");
    lengthen(&inner, 2).await;
    let found = logs.load(&session()).await.unwrap();
    assert_eq!(found.queued_messages().len(), 52);
    assert_eq!(store.appends_read(), first + 3, "what is new, and the append before it");
}

#[tokio::test]
async fn the_sessions_that_were_used_last_are_kept() {
    let (store, folds) = (MemoryStore::new(), SessionCache::default());
    let known = begun(&store, "go").await;
    folds.keep(known);
    for other in 0..MAX_CACHED_SESSIONS - 1 {
        folds.keep(Session::new(SessionId::from(format!("other{other}"))));
    }
    let store = FaultStore::new(Arc::new(store));
    let logs = SessionReader { store: &store, folds: Some(&folds) };
    logs.load(&session()).await.unwrap();
    assert_eq!(store.appends_read(), 0);
    folds.keep(Session::new(SessionId::from("one more")));
    logs.load(&session()).await.unwrap();
    assert_eq!(store.appends_read(), 0, "it was used since, others were not");
    for other in 0..MAX_CACHED_SESSIONS {
        folds.keep(Session::new(SessionId::from(format!("more{other}"))));
    }
    logs.load(&session()).await.unwrap();
    assert_eq!(store.appends_read(), 1);
}
