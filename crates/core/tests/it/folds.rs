//! Tests of the session cache.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use helix_agents_conformance::faults::FaultStore;
use helix_agents_conformance::normalise;
use helix_agents_core::agent::Agent;
use helix_agents_core::clock::IdSource;
use helix_agents_core::clock::IdSourceExt as _;
use helix_agents_core::id::{RunId, SessionId};
use helix_agents_core::message::UserMessage;
use helix_agents_core::observer::Observers;
use helix_agents_core::session::{
    Durability, Journal, JournalConfig, MAX_CACHED_SESSIONS, MessageOrigin, RequestContext,
    Session, SessionCache, SessionReader, StartRun, catch_up, execute_events, load, queue_message,
};
use helix_agents_core::store::{Head, NewSession, StateStore};
use helix_agents_store_memory::MemoryStore;

use crate::support::Counting;

fn session() -> SessionId {
    SessionId::from("s")
}

/// Returns a source of ids that no other source returns.
fn fresh() -> Counting {
    static SOURCES: AtomicU64 = AtomicU64::new(0);
    Counting::from(SOURCES.fetch_add(1, Ordering::Relaxed) << 32)
}

/// Creates a session that starts with this message. Its run id is chosen by the caller, and a later
/// session may use the same id.
async fn create(store: &MemoryStore, words: &str) -> Session {
    let agent = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    let (agent, run) = (agent.build().unwrap().erased(), RunId::from("chosen"));
    let (fold, start) = (Session::new(session()), StartRun::new(run.clone(), "parts", 0));
    let input = words.into();
    let events = execute_events(&fold, &agent, &start, &input, &BTreeMap::new(), false).unwrap();
    let config = JournalConfig {
        store: Arc::new(store.clone()),
        ids: Arc::new(fresh()),
        lease: Duration::from_secs(60),
        durability: Durability::default(),
        observers: Observers::default(),
    };
    let new = NewSession {
        agent: Arc::clone(agent.name()),
        root: session(),
        parent: None,
        tags: BTreeMap::new(),
    };
    let mut journal = Journal::new(config, agent, fold, run);
    journal.create(new, events).await.unwrap();
    journal.into_session().unwrap()
}

/// Appends this number of messages to the log from outside a run.
async fn lengthen(store: &MemoryStore, messages: usize) {
    let ids: &dyn IdSource = &fresh();
    for _ in 0..messages {
        let request_context = RequestContext::new(store, ids);
        let message = UserMessage::new("and then");
        queue_message(
            request_context,
            &session(),
            &ids.request(),
            &message,
            MessageOrigin::default(),
        )
        .await
        .unwrap();
    }
}

async fn head(store: &MemoryStore) -> Head {
    store.head(&session()).await.unwrap().unwrap()
}

/// Caches a fold of a log with `kept` messages after the first, and replaces the session with one
/// of the same id whose log has `new` messages. The cache must return the new session.
async fn check_new_log(kept: usize, new: usize) {
    for alone in [true, false] {
        let (store, folds) = (MemoryStore::new(), SessionCache::default());
        let mut fold = create(&store, "old").await;
        lengthen(&store, kept).await;
        catch_up(&store, &mut fold).await.unwrap();
        folds.keep(fold);
        store.delete(&session()).await.unwrap();
        create(&store, "new").await;
        lengthen(&store, new).await;

        let head = head(&store).await;
        let found = folds.get(&store, &head, alone).await.unwrap();
        assert_eq!(normalise::transcript(found.transcript()), "user \"new\"\n", "alone: {alone}");
        assert_eq!(*found.position(), head.position, "alone: {alone}");
        assert_eq!(found.queued_messages().len(), new, "alone: {alone}");
    }
}

#[tokio::test]
async fn a_cached_fold_is_not_used_for_a_new_log_of_the_same_length() {
    check_new_log(0, 0).await;
    check_new_log(2, 2).await;
}

/// The new appends would also be legal after the old log.
#[tokio::test]
async fn a_cached_fold_is_not_used_for_a_longer_new_log() {
    check_new_log(0, 1).await;
    check_new_log(1, 3).await;
}

#[tokio::test]
async fn a_cached_fold_is_not_used_for_a_shorter_new_log() {
    check_new_log(1, 0).await;
    check_new_log(3, 1).await;
}

#[tokio::test]
async fn a_cached_fold_is_brought_up_to_date() {
    let (store, folds) = (MemoryStore::new(), SessionCache::default());
    folds.keep(create(&store, "go").await);
    for _ in 0..2 {
        lengthen(&store, 1).await;
        let found = folds.get(&store, &head(&store).await, false).await.unwrap();
        let known = load(&store, &session()).await.unwrap();
        assert_eq!(found.position(), known.position());
        assert_eq!(found.queued_messages(), known.queued_messages());
    }
}

#[tokio::test]
async fn known_appends_are_not_read_again() {
    let (inner, folds) = (MemoryStore::new(), SessionCache::default());
    create(&inner, "go").await;
    lengthen(&inner, 50).await;
    let store = FaultStore::new(Arc::new(inner.clone()));
    let logs = SessionReader { store: &store, folds: Some(&folds) };
    logs.load(&session()).await.unwrap();
    let first = store.appends_read();
    assert!(first > 50, "{first}");
    logs.load(&session()).await.unwrap();
    logs.find(&session()).await.unwrap().unwrap();
    assert_eq!(store.appends_read(), first, "nothing is new");
    lengthen(&inner, 2).await;
    let found = logs.load(&session()).await.unwrap();
    assert_eq!(found.queued_messages().len(), 52);
    assert_eq!(store.appends_read(), first + 3, "the new appends, and the append before them");
}

#[tokio::test]
async fn recently_used_sessions_stay_cached() {
    let (store, folds) = (MemoryStore::new(), SessionCache::default());
    let known = create(&store, "go").await;
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
    assert_eq!(store.appends_read(), 0, "it was used more recently than others");
    for other in 0..MAX_CACHED_SESSIONS {
        folds.keep(Session::new(SessionId::from(format!("more{other}"))));
    }
    logs.load(&session()).await.unwrap();
    assert_eq!(store.appends_read(), 1);
}
