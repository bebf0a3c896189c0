//! The actions of users and programs, and the injection of faults.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select};
use helix_agents_conformance::rng::Rng;
use helix_agents_core::clock::Clock;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::{ExecuteOptions, ForkOptions, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{
    SessionExport, delete_session, export_session, import_session, load,
};
use helix_agents_core::store::{Purge, SessionStatus, StateStore as _};
use helix_agents_store_memory::{MemoryOptions, MemoryStore};
use helix_agents_testkit::trees::heads;
use tokio::time::sleep;

use crate::marks::Mark;
use crate::parameters::Fault;
use crate::process::Process;
use crate::wire::Cut;
use crate::world::World;

/// An action of a user or a program. Likely actions are listed more often in [`ACTS`].
#[derive(Debug, Clone, Copy)]
enum Act {
    Execute,
    Answer,
    Resume,
    Sweep,
    GiveUp,
    Stop,
    Message,
    ReadPage,
    Delete,
    Purge,
    Fork,
    Rewind,
    Follow,
    Export,
}

const ACTS: [Act; 31] = [
    Act::Execute,
    Act::Execute,
    Act::Answer,
    Act::Answer,
    Act::Answer,
    Act::Answer,
    Act::Resume,
    Act::Resume,
    Act::Sweep,
    Act::Sweep,
    Act::Sweep,
    Act::Sweep,
    Act::GiveUp,
    Act::Stop,
    Act::Stop,
    Act::Stop,
    Act::Message,
    Act::Message,
    Act::ReadPage,
    Act::ReadPage,
    Act::Delete,
    Act::Purge,
    Act::Fork,
    Act::Fork,
    Act::Rewind,
    Act::Rewind,
    Act::Rewind,
    Act::Follow,
    Act::Follow,
    Act::Follow,
    Act::Export,
];

/// The errors of rewinding to a checkpoint that the session had a moment ago.
const CHECKPOINT_ERRORS: [ErrorCode; 2] = [ErrorCode::CheckpointNotFound, ErrorCode::ChildrenOpen];

/// Spawns one action of a user or a program in a process.
pub(crate) fn act(world: &World, process: &Process, number: usize, rng: &mut Rng) {
    let roots: Vec<_> = world.roots().collect();
    let root = rng.pick(&roots).cloned().unwrap_or_else(|| SessionId::from("root-0"));
    let starts = number < world.story.trees;
    let act = if starts { Act::Execute } else { *rng.pick(&ACTS).unwrap() };
    let root = if starts { roots[number].clone() } else { root };
    world.trace.note("act", &(process.life.number(), act, &root));
    let caller = Caller {
        world: world.clone(),
        process: process.clone(),
        root,
        number,
        rng: Rng::of((world.story.seed, "act", number)),
    };
    world.spawn(process, caller.act(act));
}

struct Caller {
    world: World,
    process: Process,
    root: SessionId,
    number: usize,
    rng: Rng,
}

impl Caller {
    async fn act(mut self, act: Act) {
        match act {
            Act::Execute => self.execute().await,
            Act::Answer => self.answer().await,
            Act::Resume => self.resume().await,
            Act::Sweep => self.sweep().await,
            Act::GiveUp => self.give_up().await,
            Act::Stop => self.stop().await,
            Act::Message => self.message().await,
            Act::ReadPage => self.read_page().await,
            Act::Delete => self.delete().await,
            Act::Purge => self.purge().await,
            Act::Fork => self.fork().await,
            Act::Rewind => self.rewind().await,
            Act::Follow => self.world.readers.follow(&self.process, &self.root, self.rng).await,
            Act::Export => self.export().await,
        }
    }

    async fn execute(&self) {
        let mut options = ExecuteOptions::default().session(self.root.clone());
        options.budget = self.world.story.budget();
        let text = format!("message {}", self.number);
        let resuming = Resuming::start(&self.world, &self.root);
        let executor = &self.process.executor;
        let executed = executor.execute(self.process.agent(), text.into(), options).await;
        drop(resuming);
        match executed {
            Ok(handle) => self.world.watch(&self.process, handle),
            Err(error) => self.world.check_error(&self.process, "execute", &error),
        }
    }

    async fn answer(&mut self) {
        let executor = Arc::clone(&self.process.executor);
        let Ok(pending) = executor.pending_calls(&self.root).await else { return };
        for view in pending {
            if self.rng.once_in(3) {
                continue;
            }
            let fitting = !self.rng.once_in(10);
            for _ in 0..1 + self.rng.below(7) / 6 {
                let answers = &self.world.answers;
                let given = answers.give(&*executor, &self.root, &view, &mut self.rng, fitting);
                if let Err(error) = given.await {
                    self.world.check_error(&self.process, "submit", &error);
                }
            }
        }
    }

    async fn resume(&mut self) {
        let resumers = (0..1 + self.rng.below(3)).map(|_| {
            let mut options = ResumeOptions::default();
            if self.rng.once_in(4) {
                options = options.message(format!("also {}", self.number));
            }
            options
        });
        let resumers: Vec<_> = resumers.collect();
        let resumers = resumers.into_iter().map(|options| self.resume_with(options));
        join_all(resumers.collect::<Vec<_>>()).await;
    }

    async fn resume_with(&self, options: ResumeOptions) {
        let resuming = Resuming::start(&self.world, &self.root);
        let executor = &self.process.executor;
        let resumed = executor.resume(self.process.agent(), &self.root, options).await;
        drop(resuming);
        match resumed {
            Ok(handle) => self.world.watch(&self.process, handle),
            Err(error) if CHECKPOINT_ERRORS.contains(&error.code()) => {}
            Err(error) => self.world.check_error(&self.process, "resume", &error),
        }
    }

    async fn sweep(&self) {
        match self.process.executor.sweep().await {
            Ok(handles) => {
                for handle in handles {
                    self.world.watch(&self.process, handle);
                }
            }
            Err(error) => self.world.check_error(&self.process, "sweep", &error),
        }
    }

    /// Resumes, and drops the future midway.
    async fn give_up(&mut self) {
        let limit = Duration::from_millis(self.rng.below(60) as u64);
        let resume = Box::pin(self.resume_with(ResumeOptions::default()));
        drop(select(resume, Box::pin(sleep(limit))).await);
    }

    async fn stop(&mut self) {
        let Ok(heads) = heads(&*self.world.store, &self.root).await else { return };
        let Some(head) = self.rng.pick(&heads) else { return };
        let session = if self.rng.once_in(2) { &self.root } else { &head.session };
        let asked = if self.rng.once_in(3) {
            self.process.executor.abort(session, Some("enough".to_owned())).await
        } else {
            self.process.executor.interrupt(session, None).await
        };
        if let Err(error) = asked {
            self.world.check_error(&self.process, "a request", &error);
        }
    }

    async fn message(&mut self) {
        let text = format!("by the way {}", self.number);
        let Ok(heads) = heads(&*self.world.store, &self.root).await else { return };
        let Some(head) = self.rng.pick(&heads) else { return };
        let session = if self.rng.once_in(2) { &self.root } else { &head.session };
        if *session != self.root {
            self.world.reached.note(Mark::MessageBelow);
        }
        let sent = self.process.executor.send_message(session, UserMessage::new(text)).await;
        if let Err(error) = sent {
            self.world.check_error(&self.process, "a message", &error);
        }
    }

    /// Deletes an inactive tree. Requests that are still on their way could create orphaned children, so stories with
    /// late or repeated requests delete nothing.
    async fn delete(&self) {
        let (story, store) = (self.world.story, &*self.world.store);
        if story.has(Fault::Late) || story.has(Fault::Doubled) {
            return;
        }
        let Ok(heads) = heads(store, &self.root).await else { return };
        if heads.is_empty() || heads.iter().any(|head| head.summary.run.is_some()) {
            return;
        }
        self.world.reached.note(Mark::Delete);
        if let Err(error) = delete_session(store, store, &self.root).await {
            self.world.check_error(&self.process, "a deletion", &error);
        }
    }

    /// Purges ended trees, in stories that delete sessions.
    async fn purge(&mut self) {
        let story = self.world.story;
        if story.has(Fault::Late) || story.has(Fault::Doubled) {
            return;
        }
        let age = self.rng.below(story.lease().as_millis() as usize * 2);
        let older_than = Duration::from_millis(age as u64);
        let statuses =
            vec![SessionStatus::Completed, SessionStatus::Failed, SessionStatus::Aborted];
        if let Err(error) = self.process.wire.purge(&Purge { older_than, statuses }).await {
            self.world.check_error(&self.process, "a purge", &error);
        }
    }

    /// Forks a session at one of its checkpoints. The fork becomes another tree of the story.
    async fn fork(&mut self) {
        let Some(version) = self.checkpoint().await else { return };
        let fork = format!("fork-{}", self.number);
        let options = ForkOptions::default().checkpoint(version).session(fork.as_str());
        let forked = self.process.executor.fork(&self.root, options).await;
        match forked {
            Ok(fork) => {
                self.root = fork;
                match self.rng.below(3) {
                    0 => self.execute().await,
                    1 => self.resume_with(ResumeOptions::default()).await,
                    _ => {}
                }
            }
            Err(error) if error.code() == ErrorCode::CheckpointNotFound => {}
            // The fork was created, deleted and created anew while its reply was on the way.
            Err(error)
                if error.code() == ErrorCode::SessionExists
                    && self.world.store.is_gone(&fork.as_str().into()) => {}
            Err(error) => self.world.check_error(&self.process, "a fork", &error),
        }
    }

    /// Rewinds a session to one of its checkpoints.
    async fn rewind(&mut self) {
        let Some(version) = self.checkpoint().await else { return };
        let mut options = ResumeOptions::default().checkpoint(version);
        if self.rng.once_in(2) {
            options = options.message(format!("rather {}", self.number));
        }
        self.resume_with(options).await;
    }

    /// Returns one of the session's checkpoints.
    async fn checkpoint(&mut self) -> Option<u64> {
        let session = load(&*self.world.store, &self.root).await.ok()?;
        let checkpoints: Vec<_> =
            session.checkpoints().iter().map(|checkpoint| checkpoint.version).collect();
        self.rng.pick(&checkpoints).copied()
    }

    /// Exports a session, and checks that its import into an empty store is the same.
    async fn export(&self) {
        let Ok(export) = export_session(&*self.process.wire, &self.root).await else { return };
        let other = MemoryStore::with_clock(
            MemoryOptions::default(),
            Arc::clone(&self.world.store.clock) as Arc<dyn Clock>,
        );
        let imported = async {
            import_session(&other, &export).await?;
            export_session(&other, &self.root).await
        };
        self.world.reached.note(Mark::Export);
        match imported.await {
            Ok(again) if is_same(&export, &again) => {}
            Ok(again) => {
                self.world.add_problem(format!("exported as {export:?}, imported as {again:?}"));
            }
            Err(error) => self.world.add_problem(format!("an import: {error:?}")),
        }
    }

    /// Reads the page of a session, as a user does.
    async fn read_page(&self) {
        // Without streams there is no page.
        if let Err(error) = self.process.executor.page(&self.root).await
            && !error.is_retryable()
        {
            self.world.check_error(&self.process, "a page", &error);
        }
    }
}

/// Returns `true` if both exports have the same events.
fn is_same(one: &SessionExport, other: &SessionExport) -> bool {
    let events = |export: &SessionExport| {
        let sessions = export.sessions().iter();
        sessions
            .map(|session| (session.session.clone(), session.events.clone()))
            .collect::<BTreeMap<_, _>>()
    };
    events(one) == events(other)
}

/// The guard of a caller that resumes or executes a session.
struct Resuming<'a>(&'a World, &'a SessionId);

impl<'a> Resuming<'a> {
    fn start(world: &'a World, root: &'a SessionId) -> Self {
        world.store.invariants().record_resume(root, true);
        Self(world, root)
    }
}

impl Drop for Resuming<'_> {
    fn drop(&mut self) {
        self.0.store.invariants().record_resume(self.1, false);
    }
}

/// Injects one fault into a process, if the story has faults.
pub(crate) fn inject_fault(world: &World, all: &[Process], process: &Process, rng: &mut Rng) {
    let kinds = [
        Fault::Kills,
        Fault::Stalls,
        Fault::Stalls,
        Fault::Partitions,
        Fault::Streams,
        Fault::Jumps,
        Fault::Outages,
        Fault::Snapshots,
    ];
    let kinds: Vec<_> = kinds.into_iter().filter(|kind| world.story.has(*kind)).collect();
    let Some(kind) = rng.pick(&kinds).copied() else { return };
    let lease = world.story.lease();
    let lasts = lease * u32::try_from(1 + rng.below(40)).unwrap_or(1) / 10;
    world.trace.note("fault", &(process.life.number(), kind, lasts));
    match kind {
        Fault::Kills if rng.once_in(3) => shut_down(world, process),
        Fault::Kills => {
            world.reached.note(Mark::Kill);
            process.life.end();
        }
        Fault::Stalls => process.wire.stall(lasts),
        Fault::Partitions => {
            world.reached.note(Mark::Partition);
            let cut = if rng.once_in(2) { Cut::Requests } else { Cut::Answers };
            cut_off(world, process, cut, lasts);
        }
        Fault::Snapshots => {
            let world = world.clone();
            drop(tokio::spawn(async move { save_snapshots(&world).await }));
        }
        Fault::Outages => {
            world.reached.note(Mark::Outage);
            all.iter().for_each(|process| cut_off(world, process, Cut::Requests, lasts));
        }
        Fault::Streams => {
            world.reached.note(Mark::StreamsAway);
            process.wire.set_streams_unavailable(true);
            let wire = Arc::clone(&process.wire);
            world.spawn(process, async move {
                sleep(lasts * 3).await;
                wire.set_streams_unavailable(false);
            });
        }
        // The clock goes back, which extends leases. If the clock that determines lease expiry went forward, leases
        // would expire and their owners could not know.
        Fault::Jumps => {
            world.reached.note(Mark::StoreJump);
            let by = i64::try_from(rng.below(10_000)).unwrap_or_default();
            world.store.clock.jump(-by);
            process.clock.jump(if rng.once_in(2) { 3 * by } else { -3 * by });
        }
        _ => {}
    }
}

/// Saves snapshots of all sessions, as processes do for long ones.
async fn save_snapshots(world: &World) {
    for root in world.roots() {
        for head in heads(&*world.store, &root).await.unwrap_or_default() {
            let Ok(session) = load(&*world.store, &head.session).await else { continue };
            let Ok(snapshot) = session.overview().to_snapshot() else { continue };
            drop(world.store.save_snapshot(&head.session, snapshot).await);
        }
    }
}

/// Disconnects a process from the store for a time.
fn cut_off(world: &World, process: &Process, cut: Cut, lasts: Duration) {
    process.wire.cut(cut);
    world.record_trouble(process, lasts);
    let wire = Arc::clone(&process.wire);
    world.spawn(process, async move {
        sleep(lasts).await;
        wire.cut(Cut::Whole);
    });
}

fn shut_down(world: &World, process: &Process) {
    world.reached.note(Mark::Shutdown);
    // It releases its leases, and other processes may take over at once.
    world.record_trouble(process, Duration::from_secs(3_600));
    let (executor, life) = (Arc::clone(&process.executor), process.life.clone());
    world.spawn(process, async move {
        executor.shutdown().await;
        life.end();
    });
}
