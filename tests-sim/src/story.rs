//! Runs a story: actions and faults at random, and then a time without faults in which every session must end.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use helix_agents_conformance::normalise;
use helix_agents_conformance::rng::Rng;
use helix_agents_core::error::Error;
use helix_agents_core::executor::{ExecuteOptions, Resumable, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{load, load_events};
use helix_agents_core::store::{Head, SessionStatus, StateStore};
use helix_agents_testkit::trees::{
    Expected, Observations, Redelivery, Stats, check, heads, is_expected,
};
use tokio::time::{Instant, sleep, timeout};

use crate::marks::{Mark, Marks};
use crate::moves::{act, inject_fault};
use crate::panics::catch_panics;
use crate::parameters::{EngineKind, Fault, Story};
use crate::process::Process;
use crate::wire::MAX_DELAY;
use crate::world::World;

/// The simulated time after the last fault in which every session must end, in addition to forty leases.
const SETTLE_TIME: Duration = Duration::from_secs(600);

/// The maximum simulated time of a story. Without this limit, a deadlock in a story would block the simulation.
const MAX_STORY_TIME: Duration = Duration::from_secs(24 * 3_600);

const ENDLESS: &str = "it loops endlessly";
const BLOCKED: &str = "it waits for something that never happens";

/// The maximum number of lines that are printed of a log that does not end.
const MAX_LOG_LINES: usize = 60;

/// The number of times that a failed root is resumed.
const MAX_FAILURES: usize = 5;

/// The outcome of a story.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The problems that were found.
    pub problems: Vec<String>,
    /// The situations that were reached.
    pub marks: Marks,
    /// Counters of what happened.
    pub stats: Stats,
    /// The trace of everything that happened, if it was requested.
    pub lines: Vec<String>,
}

impl Story {
    /// Runs the story on this thread.
    ///
    /// # Panics
    /// If the thread already has a tokio runtime.
    #[must_use]
    pub fn run(self) -> Outcome {
        self.run_as(false)
    }

    /// Runs the story, and records its trace as text.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    #[must_use]
    pub fn run_with_trace(self) -> Outcome {
        self.run_as(true)
    }

    fn run_as(self, text: bool) -> Outcome {
        let (outcome, panics) = catch_panics(|| self.run_on_this_thread(text));
        let mut outcome = outcome.unwrap_or_default();
        outcome.problems.extend(panics);
        outcome
    }

    fn run_on_this_thread(self, text: bool) -> Outcome {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true);
        // Tokio chooses the order of some wakes at random.
        #[cfg(tokio_unstable)]
        builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&self.seed.to_le_bytes()));
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let world = World::new(self, text);
            let mut story_run = StoryRun { world, slots: Vec::new(), booted: 0 };
            let stats = timeout(MAX_STORY_TIME, story_run.run()).await;
            let world = &story_run.world;
            let stats = stats.unwrap_or_else(|_| {
                let what = if world.trace.is_endless() { ENDLESS } else { BLOCKED };
                Err(what.to_owned())
            });
            let mut problems = world.problems();
            let stats = stats.unwrap_or_else(|problem| {
                problems.push(problem);
                Stats::default()
            });
            let (marks, lines) = (world.reached.all(), world.trace.take_lines());
            Outcome { problems, marks, stats, lines }
        })
    }
}

struct StoryRun {
    world: World,
    slots: Vec<Process>,
    booted: usize,
}

impl StoryRun {
    async fn run(&mut self) -> Result<Stats, String> {
        self.chaos().await;
        self.world.calm();
        for process in &self.slots {
            process.life.wake();
        }
        let last = self.boot(usize::MAX);
        self.settle(&last).await?;
        // Delayed requests still arrive, and their senders receive late answers.
        let delay = if self.world.story.has(Fault::Late) { MAX_DELAY } else { Duration::ZERO };
        sleep((delay + self.world.story.lease()) * 2).await;
        self.settle(&last).await?;
        for process in &self.slots {
            process.life.end();
        }
        self.check(&last).await
    }

    fn boot(&mut self, dies_at: usize) -> Process {
        self.booted += 1;
        self.world.boot(self.booted, dies_at)
    }

    fn boot_with_crash(&mut self) -> Process {
        let dies_at = self.world.story.dies_at(self.booted + 1);
        self.boot(dies_at)
    }

    /// Records whether a process crashed at a request.
    fn note_crash(&self, slot: usize) {
        if self.slots[slot].life.died_at_its_tick() {
            self.world.reached.note(Mark::KillAtRequest);
        }
    }

    async fn chaos(&mut self) {
        let story = self.world.story;
        let mut rng = story.rng("chaos");
        for number in 0..story.moves {
            let which = rng.below(story.processes);
            while self.slots.len() <= which {
                let process = self.boot_with_crash();
                self.slots.push(process);
            }
            if self.slots[which].life.is_over() {
                self.note_crash(which);
                self.slots[which] = self.boot_with_crash();
            }
            let process = self.slots[which].clone();
            act(&self.world, &process, number, &mut rng);
            let pause = match rng.below(4) {
                0 => 0,
                1 => rng.below(10),
                2 => rng.below(300),
                _ => rng.below(story.lease().as_millis() as usize * 2),
            };
            sleep(Duration::from_millis(pause as u64)).await;
            if rng.once_in(2) {
                inject_fault(&self.world, &self.slots, &process, &mut rng);
                if rng.once_in(2) {
                    sleep(Duration::from_millis(rng.below(100) as u64)).await;
                }
            }
        }
    }

    /// Answers all pending calls and resumes all sessions, until nothing is left to do.
    async fn settle(&self, last: &Process) -> Result<(), String> {
        // A lease may have been taken before the store's clock went back.
        let limit = story_limit(self.world.story) + self.world.store.clock.behind();
        let started = Instant::now();
        let mut rng = self.world.story.rng("settle");
        let roots: Vec<_> = self.world.roots().collect();
        let mut settling: Vec<_> = roots
            .iter()
            .map(|root| Settling {
                story_run: self,
                last,
                root,
                failures: 0,
                before: 0,
                unchanged: 0,
            })
            .collect();
        let pause = (self.world.story.lease() / 2).min(Duration::from_secs(2));
        loop {
            if self.world.trace.is_endless() {
                return Err(ENDLESS.to_owned());
            }
            let mut open = false;
            for tree in &mut settling {
                open |= !tree.round(&mut rng).await?;
            }
            if !open {
                return Ok(());
            }
            if started.elapsed() > limit {
                return Err(format!("it did not end within {limit:?}\n{}", self.logs().await?));
            }
            if let Err(error) = last.executor.sweep().await {
                expected("sweep", &error)?;
            }
            sleep(pause).await;
        }
    }

    async fn check(&self, last: &Process) -> Result<Stats, String> {
        let redelivery = match self.world.story.engine() {
            EngineKind::Local => Redelivery::Never,
            EngineKind::WorkItems(redelivery) => redelivery,
        };
        let noted = Observations {
            answers: self.world.answers.all(),
            trace: self.world.executions.all(),
            hook_calls: self.world.hook_calls.all(),
            engine_recoveries: 0,
        };
        let mut sum = Stats { deaths: self.booted - 1, ..Stats::default() };
        for root in self.world.roots() {
            for head in heads(&*self.world.store, &root).await? {
                // A parent that records the result of a sub-agent has shown the sub-agent's end.
                if is_sub_agent(&head.session) && head.summary.status == SessionStatus::Completed {
                    continue;
                }
                // Reading a session repairs its stream.
                let looked = async {
                    let handle = last.executor.handle(&head.session).await?;
                    drop(handle.result().await);
                    handle.stream().await.map(drop)
                };
                looked.await.map_err(|error: Error| format!("reading the session: {error:?}"))?;
            }
            let of_tree = of_tree(&self.world, &root, &noted).await?;
            let durability = self.world.story.durability();
            let gaps = self.world.story.has_gaps();
            let recreated = self.world.store.is_gone(&root);
            // A request of a dropped work item may arrive after the work item was executed again.
            let overlaps = redelivery == Redelivery::AtOnce
                || (redelivery != Redelivery::Never && self.world.story.has(Fault::Late));
            let expected = Expected { root, durability, redelivery, gaps, overlaps, recreated };
            let (state, streams) = (&*self.world.store, &*self.world.store);
            if !expected.recreated {
                let problems = self.world.readers.check(streams, &expected.root).await;
                problems.into_iter().for_each(|problem| self.world.add_problem(problem));
            }
            sum += check(state, streams, &expected, &of_tree).await?;
        }
        Ok(sum)
    }

    /// Returns the logs of the sessions that have not ended.
    async fn logs(&self) -> Result<String, String> {
        let mut text = String::new();
        for root in self.world.roots() {
            for head in heads(&*self.world.store, &root).await? {
                if !has_ended(&head, 0) {
                    let log = load_events(&*self.world.store, &head.session, 0).await;
                    let log = normalise::log(&log.map_err(|error| error.to_string())?);
                    let lines: Vec<_> = log.lines().collect();
                    let end = lines[lines.len().saturating_sub(MAX_LOG_LINES)..].join("\n");
                    _ = writeln!(text, "{} {:?}:\n{end}", head.session, head.summary);
                }
            }
        }
        Ok(text)
    }
}

/// Returns `true` if a session is that of a sub-agent, and not of a companion or a root.
fn is_sub_agent(session: &SessionId) -> bool {
    session.as_str().rsplit_once("-sub-").is_some_and(|(_, call)| !call.contains("-agent-"))
}

/// Returns how long the story may take after its last fault.
fn story_limit(story: Story) -> Duration {
    // Slow code stays slow.
    SETTLE_TIME
        + story.lease()
            * if story.has(Fault::Slow) || story.has(Fault::SlowHooks) { 2_000 } else { 40 }
}

/// Returns the records of one tree.
async fn of_tree(
    world: &World,
    root: &SessionId,
    noted: &Observations,
) -> Result<Observations, String> {
    let sessions: Vec<_> =
        heads(&*world.store, root).await?.into_iter().map(|head| head.session).collect();
    let mut noted = noted.clone();
    noted.answers.retain(|answer| sessions.contains(&answer.session));
    noted.trace.retain(|execution| sessions.contains(&execution.session));
    noted.hook_calls.retain(|call| sessions.contains(&call.session));
    if world.store.is_gone(root) {
        let mut runs = BTreeSet::new();
        for session in &sessions {
            let fold = load(&*world.store, session).await.map_err(|error| error.to_string())?;
            runs.extend(fold.runs().map(|run| run.id.clone()));
        }
        noted.answers.clear();
        noted.trace.retain(|execution| runs.contains(&execution.run));
        noted.hook_calls.retain(|call| runs.contains(&call.run));
    }
    Ok(noted)
}

/// A tree that is driven to its end.
struct Settling<'a> {
    story_run: &'a StoryRun,
    last: &'a Process,
    root: &'a SessionId,
    failures: usize,
    before: u64,
    unchanged: usize,
}

impl Settling<'_> {
    /// Answers and resumes what it can, and returns `true` if the tree has ended.
    async fn round(&mut self, rng: &mut Rng) -> Result<bool, String> {
        let store = &*self.story_run.world.store;
        let heads = heads(store, self.root).await?;
        if heads.is_empty() {
            return self.execute().await.map(|()| false);
        }
        if heads.iter().all(|head| has_ended(head, self.failures)) {
            return Ok(true);
        }
        let versions = heads.iter().map(|head| head.position.version).sum();
        self.unchanged = if versions == self.before { self.unchanged + 1 } else { 0 };
        self.before = versions;
        let interrupted = if self.unchanged > 2 {
            interrupted_children(store, &heads).await?
        } else {
            Vec::new()
        };
        self.answer_all(rng).await?;
        let head = heads.iter().find(|head| head.session == *self.root);
        let failed = head.is_some_and(|head| head.summary.status == SessionStatus::Failed);
        self.failures += usize::from(failed);
        if !failed || self.failures <= MAX_FAILURES {
            let options = ResumeOptions::default();
            self.resume(self.root, &self.last.family.root.name, options).await?;
        }
        for (session, agent, options) in interrupted {
            self.resume(&session, &agent, options).await?;
        }
        Ok(false)
    }

    async fn execute(&self) -> Result<(), String> {
        let options = ExecuteOptions::default().session(self.root.clone());
        let agent = self.last.agent();
        match self.last.executor.execute(agent, "Begin.".into(), options).await {
            Ok(handle) => self.story_run.world.watch(self.last, handle),
            Err(error) => expected("execute", &error)?,
        }
        Ok(())
    }

    async fn answer_all(&self, rng: &mut Rng) -> Result<(), String> {
        let (executor, world) = (&*self.last.executor, &self.story_run.world);
        let Ok(pending) = executor.pending_calls(self.root).await else { return Ok(()) };
        for view in pending {
            if let Err(error) = world.answers.give(executor, self.root, &view, rng, true).await {
                expected("submit", &error)?;
            }
        }
        Ok(())
    }

    async fn resume(
        &self,
        session: &SessionId,
        agent: &str,
        options: ResumeOptions,
    ) -> Result<(), String> {
        let (executor, world) = (&*self.last.executor, &self.story_run.world);
        match executor.can_resume(session).await {
            Ok(Resumable::Yes) => {}
            Ok(_) => return Ok(()),
            Err(error) => return expected("can_resume", &error),
        }
        world.store.invariants().record_resume(session, true);
        let agent = self.last.family.agent(agent);
        let resumed = executor.resume(agent, session, options).await;
        world.store.invariants().record_resume(session, false);
        match resumed {
            Ok(handle) => world.watch(self.last, handle),
            Err(error) => expected("resume", &error)?,
        }
        Ok(())
    }
}

/// Returns the children that were interrupted individually, with their agents. The options resume only the interrupted
/// run: if the parent resumes a child first, and its call has ended, no user may continue the child.
async fn interrupted_children(
    store: &dyn StateStore,
    heads: &[Head],
) -> Result<Vec<(SessionId, String, ResumeOptions)>, String> {
    let mut children = Vec::new();
    for head in heads {
        if head.summary.status != SessionStatus::Interrupted || head.created.parent.is_none() {
            continue;
        }
        let fold = load(store, &head.session).await.map_err(|error| error.to_string())?;
        let mut options = ResumeOptions::default();
        options.after = fold.last_run().map(|run| run.id.clone());
        children.push((head.session.clone(), head.created.agent.to_string(), options));
    }
    Ok(children)
}

fn expected(what: &str, error: &Error) -> Result<(), String> {
    if is_expected(error.code()) { Ok(()) } else { Err(format!("{what}: {error:?}")) }
}

/// Returns `true` if nothing is left to do. A failed root is resumed a few times; a failed child has reported to its
/// parent.
fn has_ended(head: &Head, failures: usize) -> bool {
    match head.summary.status {
        SessionStatus::Completed | SessionStatus::Aborted => true,
        SessionStatus::Failed => head.created.parent.is_some() || failures > MAX_FAILURES,
        SessionStatus::Active | SessionStatus::Interrupted => false,
    }
}
