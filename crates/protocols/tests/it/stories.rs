//! Random trees of agents whose processes crash, with clients that watch the root session.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::executor::AgentExecutor as _;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunRecord, RunStatus, Session, SessionPage};
use helix_agents_protocols::turn::Folds;
use helix_agents_runtime::Sessions;
use helix_agents_runtime_local::{LocalRuntime, RuntimeBuilder as _};
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::trees::{Booted, Process, Redelivery, Stores, Story};

use crate::talkative::Talkative;

/// The root session of every tree.
pub(crate) const ROOT: &str = "root";

/// Returns the number of stories that the tier of the test run includes.
pub(crate) fn seeds(usual: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = number("HELIX_SEED") {
        return seed..seed + 1;
    }
    let share = match std::env::var("HELIX_TIER").as_deref() {
        Ok("deep") => usual,
        Ok("gate") => usual.div_ceil(4),
        _ => usual.div_ceil(10),
    };
    0..number("HELIX_SEEDS").unwrap_or(share)
}

/// Runs a story while clients watch it, on a clock that never waits. `watch` is dropped at the end of the story;
/// `finish` runs afterwards.
pub(crate) fn run<W, F>(
    seed: u64,
    watch: impl FnOnce(Sessions) -> W,
    finish: impl FnOnce(Sessions) -> F,
) where
    W: Future<Output = ()>,
    F: Future<Output = ()>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let sessions = Sessions::new(store.clone());
    let open = move || -> BoxFuture<'static, Stores> {
        let (state, streams) = (Arc::new(store.clone()), Arc::new(store.clone()));
        async move { Stores { state, streams } }.boxed()
    };
    let boot = move |process: Process| boot(process, seed);
    runtime.block_on(async {
        let watching = watch(sessions.clone());
        let story = Story::new(seed);
        tokio::select! {
            biased;
            ended = story.run(&open, &boot) => drop(ended.unwrap()),
            () = watching => panic!("a client stopped watching"),
        }
        finish(sessions).await;
    });
}

fn boot(process: Process, seed: u64) -> BoxFuture<'static, Booted> {
    let llm = Arc::new(Talkative { inner: process.llm, seed });
    let runtime = LocalRuntime::builder()
        .state_store(process.store)
        .stream_manager(process.streams)
        .llm_adapter(llm)
        .registry(AgentRegistry::clone(&process.registry))
        .durability(process.durability)
        .lease(Duration::from_secs(30))
        .grace(Duration::from_millis(100));
    let runtime = match process.ids {
        Some(ids) => runtime.ids(ids),
        None => runtime,
    };
    let runtime = runtime.build().unwrap();
    let sweeper = runtime.clone();
    let sweep = move || {
        let runtime = sweeper.clone();
        async move { runtime.sweep().await.map(drop) }.boxed()
    };
    let booted = Booted {
        executor: Arc::new(runtime),
        sweep: Arc::new(sweep),
        redelivery: Redelivery::Never,
        misses: Duration::ZERO,
    };
    ready(booted).boxed()
}

/// Returns `true` if the sub-agents of a run have ended when the run ends. Those of a run that was stopped or waits may
/// continue, for example after a crash of their process, and record their ends after that of the run.
pub(crate) fn ends_after_children(run: &RunRecord) -> bool {
    !run.status.is_suspended() && !matches!(run.status, RunStatus::Interrupted | RunStatus::Aborted)
}

/// A page with the folds of the sub-agents, as a server reads it.
pub(crate) struct View {
    pub(crate) page: SessionPage,
    children: Vec<Session>,
}

impl View {
    /// Reads the page of the root session. Returns `None` before the session exists.
    pub(crate) async fn read(sessions: &Sessions) -> Option<Self> {
        let page = sessions.page(&SessionId::from(ROOT)).await.ok()?;
        let children = children(sessions, &page.session).await;
        Some(Self { page, children })
    }

    pub(crate) fn folds(&self) -> Folds<'_> {
        folds(&self.page.session, &self.children)
    }

    /// Returns the references of the calls that wait for an answer.
    pub(crate) fn pending(&self) -> Vec<String> {
        let own = self.page.session.pending_calls().map(|pending| pending.call.to_string());
        let of_children = self.children.iter().flat_map(|child| {
            child.pending_calls().map(move |pending| format!("{}#{}", child.id(), pending.call))
        });
        own.chain(of_children).collect()
    }
}

/// The recorded state of the tree.
pub(crate) struct Recorded {
    pub(crate) root: Session,
    children: Vec<Session>,
}

impl Recorded {
    pub(crate) async fn read(sessions: &Sessions) -> Self {
        let root = sessions.get(&SessionId::from(ROOT)).await.unwrap();
        let children = children(sessions, &root).await;
        Self { root, children }
    }

    pub(crate) fn folds(&self) -> Folds<'_> {
        folds(&self.root, &self.children)
    }
}

fn folds<'a>(root: &'a Session, children: &'a [Session]) -> Folds<'a> {
    children.iter().fold(Folds::new(root), Folds::with_child)
}

async fn children(sessions: &Sessions, root: &Session) -> Vec<Session> {
    let mut children: Vec<Session> = Vec::new();
    loop {
        let missing: Vec<_> = folds(root, &children).missing().into_iter().cloned().collect();
        let before = children.len();
        for id in missing {
            // The parent may have recorded the start of a child whose log is not written yet.
            children.extend(sessions.get(&id).await);
        }
        if children.len() == before {
            return children;
        }
    }
}
