//! Tests of overviews and snapshots: the number of appends that the first read of a long log needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use helix_agents_conformance::faults::FaultStore;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::event::{Event, ModelReply, SCHEMA, Trigger, encode};
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::message::{AssistantMessage, UserMessage};
use helix_agents_core::session::{
    CallRef, FOLD_VERSION, MessageOrigin, RequestContext, SNAPSHOT_EVENTS, Session, SessionCache,
    SessionOverview, SessionReader, StopKind, Submission, child_status, load, pending_calls,
    queue_message, request, submit, usage_of_tree,
};
use helix_agents_core::store::{
    Append, AppendOutcome, CreateOutcome, Guard, LeaseChange, NewSession, Snapshot, StateStore,
};
use helix_agents_core::usage::Usage;
use helix_agents_store_memory::MemoryStore;

use crate::support::Counting;

fn session() -> SessionId {
    SessionId::from("s")
}

/// A writer of a log, without an agent.
struct Writer {
    store: MemoryStore,
    fold: Session,
    appends: u64,
}

impl Writer {
    /// Creates a session and starts its first run.
    async fn create(store: &MemoryStore, name: &str) -> Self {
        let fold = Session::new(session());
        let mut writer = Self { store: store.clone(), fold, appends: 0 };
        let (agent, run): (Arc<str>, _) = (name.into(), RunId::from("r1"));
        let created = Event::SessionCreated {
            agent: Arc::clone(&agent),
            tags: BTreeMap::new(),
            state: Json::empty_object(),
            parent: None,
        };
        let events = [created, started("r1", None, Trigger::Execute), said("go")];
        let first = writer.next(&events, Some(&run));
        let new = NewSession { agent, root: session(), parent: None, tags: BTreeMap::new() };
        let id = first.id.clone();
        match store.create_session(new, first).await.unwrap() {
            CreateOutcome::Created { at } => writer.fold.acknowledge(id, at),
            outcome => panic!("the session was not created: {outcome:?}"),
        }
        writer
    }

    fn next(&mut self, events: &[Event], run: Option<&RunId>) -> Append {
        let expected = self.fold.position().clone();
        for event in events {
            self.fold.apply(event, run).unwrap();
        }
        self.appends += 1;
        Append {
            session: session(),
            expected,
            id: AppendId::from(format!("{} {}", self.fold.agent(), self.appends)),
            run: run.cloned(),
            schema: SCHEMA,
            count: u32::try_from(events.len()).unwrap(),
            body: encode(events).unwrap(),
            summary: Some(self.fold.summary()),
            usage: None,
            lease: LeaseChange::Keep,
            guard: Guard::None,
        }
    }

    async fn add_as(&mut self, events: &[Event], run: &RunId) {
        let append = self.next(events, Some(run));
        let id = append.id.clone();
        match self.store.append(append).await.unwrap() {
            AppendOutcome::Appended { at } => self.fold.acknowledge(id, at),
            other => panic!("{other:?}"),
        }
    }

    /// Appends events of the current run.
    async fn add(&mut self, events: &[Event]) {
        let run = self.fold.current_run().unwrap().id.clone();
        self.add_as(events, &run).await;
    }

    /// Appends steps of two appends each until the log has this number of events.
    async fn grow(&mut self, events: u64) {
        while self.fold.position().version < events {
            let step = self.fold.last_step() + 1;
            let message = AssistantMessage { content: Some("Well.".into()), ..Default::default() };
            let usage = Usage::new(5, 1);
            let reply = ModelReply {
                step,
                message: Some(Arc::new(message)),
                usage,
                model: Some("m".into()),
                ..reply()
            };
            self.add(&[reply.into()]).await;
            self.add(&[Event::StepClosed { step }]).await;
        }
    }

    async fn save(&self) {
        let snapshot = self.fold.overview().to_snapshot().unwrap();
        self.store.save_snapshot(&session(), snapshot).await.unwrap();
    }
}

fn reply() -> ModelReply {
    serde_json::from_value(serde_json::json!({
        "step": 1, "should_stop": false,
        "usage": {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "reasoning_tokens": 0},
    }))
    .unwrap()
}

fn started(run: &str, after: Option<&str>, trigger: Trigger) -> Event {
    Event::RunStarted {
        run: run.into(),
        after: after.map(RunId::from),
        trigger,
        runtime: "hand".into(),
        stream_from: 0,
        budget: None,
        clears: None,
        trace: None,
    }
}

fn said(words: &str) -> Event {
    Event::UserMessages { messages: vec![UserMessage::new(words)] }
}

/// Reads the overview as a process without a cache. Returns it with the number of appends that were
/// read.
async fn first_read(store: &MemoryStore) -> (SessionOverview, usize) {
    let store = FaultStore::new(Arc::new(store.clone()));
    let overview = SessionReader::of(&store).overview(&session()).await.unwrap();
    let whole = load(&store, &session()).await.unwrap();
    let all = usize::try_from(whole.position().version).unwrap();
    assert_eq!(overview, *whole.overview());
    let folds = SessionCache::default();
    let logs = SessionReader { store: &store, folds: Some(&folds) };
    let before = store.appends_read();
    assert_eq!(logs.overview(&session()).await.unwrap(), overview);
    let read = store.appends_read() - before;
    assert!(read <= all + 256, "at most one extra page, if the snapshot belongs to another log");
    assert_eq!(logs.overview(&session()).await.unwrap(), overview);
    assert_eq!(store.appends_read() - before, read, "a cached overview needs no read");
    (overview, read)
}

/// The bound is the number of appends since the snapshot, plus the append before it.
#[tokio::test]
async fn the_first_read_of_a_long_log_reads_as_little_as_of_a_short_one() {
    let mut counts = Vec::new();
    for events in [1_000, 20_000] {
        let store = MemoryStore::new();
        let mut writer = Writer::create(&store, "a").await;
        let mut saved = 0;
        while writer.fold.position().version < events + 100 {
            writer.grow((saved + SNAPSHOT_EVENTS).min(events + 100)).await;
            if writer.fold.is_snapshot_due() {
                writer.save().await;
                saved = writer.fold.position().version;
                writer.fold.snapshot_saved(saved);
            }
        }
        let (overview, read) = first_read(&store).await;
        assert_eq!(overview.position(), writer.fold.position());
        assert!(read <= 101, "{read} appends of a log of {events} events were read");
        counts.push(read);
    }
    assert!(counts[0].abs_diff(counts[1]) <= 2, "{counts:?}");
}

#[tokio::test]
async fn operations_without_history_read_only_appends_after_the_snapshot() {
    let store = MemoryStore::new();
    let mut writer = Writer::create(&store, "a").await;
    writer.grow(2_000).await;
    writer.save().await;
    writer.grow(2_010).await;
    let store = FaultStore::new(Arc::new(store));
    let ids = Counting::from(1 << 40);
    let request_context = RequestContext::new(&store, &ids);
    let logs = SessionReader::of(&store);
    let message = UserMessage::new("more");
    queue_message(request_context, &session(), &"q".into(), &message, MessageOrigin::default())
        .await
        .unwrap();
    let asked =
        request(request_context, &session(), None, StopKind::Interrupt, None).await.unwrap();
    assert_eq!(asked, [session()]);
    let unknown = Submission::approve(CallRef::from("9999.1"));
    submit(request_context, &session(), &unknown).await.unwrap_err();
    assert_eq!(pending_calls(logs, &session()).await.unwrap(), []);
    child_status(logs, &session()).await.unwrap();
    let used = usage_of_tree(logs, &session()).await.unwrap();
    assert_eq!(used.steps, u64::from(writer.fold.last_step()));
    let read = store.appends_read();
    assert!(read < 150, "{read} appends were read");
}

#[tokio::test]
async fn an_unsuitable_snapshot_is_ignored() {
    let store = MemoryStore::new();
    let mut writer = Writer::create(&store, "a").await;
    writer.grow(50).await;
    let good = writer.fold.overview().to_snapshot().unwrap();
    let other = Session::new("another".into()).into_overview().to_snapshot().unwrap();
    let position = good.position.clone();
    let wrong = [
        Snapshot { fold: FOLD_VERSION + 1, ..good.clone() },
        Snapshot { body: "{}".into(), ..good.clone() },
        Snapshot { body: other.body, ..good.clone() },
    ];
    for wrong in wrong {
        store.save_snapshot(&session(), wrong).await.unwrap();
        let (_, read) = first_read(&store).await;
        assert!(read > 40, "{read}");
    }
    store.save_snapshot(&session(), Snapshot { position, ..good }).await.unwrap();
    assert_eq!(first_read(&store).await.1, 0);
}

/// This happens after a restore of the store, or if the snapshot was saved too late.
#[tokio::test]
async fn a_snapshot_of_another_log_is_ignored() {
    for events in [10, 50, 90] {
        let store = MemoryStore::new();
        let mut writer = Writer::create(&store, "old").await;
        writer.grow(50).await;
        let old = writer.fold.overview().to_snapshot().unwrap();
        store.delete(&session()).await.unwrap();
        let mut writer = Writer::create(&store, "new").await;
        writer.grow(events).await;
        // The store accepts the snapshot once the log is long enough.
        store.save_snapshot(&session(), old).await.unwrap();
        let (overview, _) = first_read(&store).await;
        assert_eq!(&**overview.agent(), "new");
    }
}

#[tokio::test]
async fn a_log_that_was_rewound_after_its_snapshot_is_read_completely() {
    let store = MemoryStore::new();
    let mut writer = Writer::create(&store, "a").await;
    writer.grow(SNAPSHOT_EVENTS + 10).await;
    writer.save().await;
    writer.fold.snapshot_saved(writer.fold.position().version);
    assert!(!writer.fold.is_snapshot_due());
    let to = writer.fold.checkpoints()[3].version;
    let r2 = RunId::from("r2");
    let back = [Event::Rewound { to }, started("r2", Some("r1"), Trigger::Recover)];
    writer.add_as(&back, &r2).await;
    let (_, read) = first_read(&store).await;
    assert!(read > 1_000, "{read}");
    assert!(
        writer.fold.is_snapshot_due(),
        "no overview can follow the rewind from the old snapshot"
    );
    writer.save().await;
    writer.fold.snapshot_saved(writer.fold.position().version);
    assert!(!writer.fold.is_snapshot_due());
    writer.grow(writer.fold.position().version + 10).await;
    let (overview, read) = first_read(&store).await;
    assert!(read < 15, "{read}");
    assert_eq!(overview.last_step(), writer.fold.last_step());
}

/// A cached overview is brought up to date across a rewind, and an older overview does not replace
/// a newer fold.
#[tokio::test]
async fn cached_overviews_follow_their_log() {
    let store = MemoryStore::new();
    let mut writer = Writer::create(&store, "a").await;
    writer.grow(20).await;
    let folds = SessionCache::default();
    let logs = SessionReader { store: &store, folds: Some(&folds) };
    for back in [false, true, false] {
        if back {
            let to = writer.fold.checkpoints()[3].version;
            let r2 = RunId::from("r2");
            let back = [Event::Rewound { to }, started("r2", Some("r1"), Trigger::Recover)];
            writer.add_as(&back, &r2).await;
        }
        writer.grow(writer.fold.position().version + 4).await;
        let overview = logs.overview(&session()).await.unwrap();
        assert_eq!(overview, *load(&store, &session()).await.unwrap().overview());
        let (head, seen) = logs.find_overview(&session()).await.unwrap().unwrap();
        assert_eq!(head.position, *seen.position());
        assert!(seen.clock() >= head.updated_at && head.updated_at > Timestamp(0));
    }
    let whole = logs.load(&session()).await.unwrap();
    assert_eq!(whole.position(), writer.fold.position());
    store.delete(&session()).await.unwrap();
    let again = Writer::create(&store, "again").await;
    let overview = logs.overview(&session()).await.unwrap();
    assert_eq!((overview.position(), &**overview.agent()), (again.fold.position(), "again"));
}
