//! A story: the random events of one tree.

use std::ops::AddAssign;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use helix_agents_conformance::rng::Rng;
use helix_agents_core::clock::IdSource;
use helix_agents_core::error::Error;
use helix_agents_core::executor::{ExecuteOptions, ResumeOptions, RunHandle};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::Durability;

use super::check::{Expected, Observations, check};
use super::hooks::HookCall;
use super::life::{Counted, Pace, ProcessLife, ProcessStore, ProcessStreams, RunProcesses};
use super::model::TreeLlm;
use super::notes::{Execution, Records};
use super::plan::{Family, Node, Scene};
use super::settle::{Settling, free_leases, free_leases_of, heads};
use super::users::{Answers, is_expected};
use super::{Boot, Booted, Open, Process, ROOT, Redelivery, Stores};

/// A simulation run of one tree, determined by its seed.
#[derive(Debug, Clone, Copy)]
pub struct Story {
    /// The seed, which determines agents, answers, moves and crashes.
    pub seed: u64,
    /// Number of moves before everything is brought to its end.
    pub moves: usize,
}

/// Statistics of a story.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stats {
    /// Number of sessions in the tree.
    pub sessions: usize,
    /// Number of processes that crashed.
    pub deaths: usize,
    /// Number of answers that were accepted.
    pub answers: usize,
    /// Number of tool executions.
    pub executions: usize,
    /// Number of events in all logs.
    pub events: usize,
}

impl AddAssign for Stats {
    fn add_assign(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.deaths += other.deaths;
        self.answers += other.answers;
        self.executions += other.executions;
        self.events += other.events;
    }
}

/// One simulated process.
struct Slot {
    life: ProcessLife,
    booted: Booted,
    handles: Vec<RunHandle>,
}

struct Simulation<'a> {
    story: Story,
    /// The stores as an outside observer sees them.
    stores: Stores,
    open: &'a Open,
    boot: &'a Boot,
    family: Family,
    root: Arc<Node>,
    lives: RunProcesses,
    ids: Option<Counted>,
    answers: Answers,
    trace: Arc<Records<Execution>>,
    hook_calls: Arc<Records<HookCall>>,
    booted: usize,
    redelivery: Redelivery,
    deaths: usize,
    problems: Vec<String>,
}

impl Story {
    /// Creates the story of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, moves: 4 + Rng::of((seed, "moves")).below(12) }
    }

    /// Returns when events are appended in this story.
    #[must_use]
    pub fn durability(self) -> Durability {
        if Rng::of((self.seed, "durability")).once_in(3) {
            Durability::PerStep
        } else {
            Durability::PerEffect
        }
    }

    /// Runs the story and checks the tree in the end. Waits are short where the clock is paused.
    ///
    /// # Errors
    /// Returns a description of all problems.
    pub async fn run(self, open: &Open, boot: &Boot) -> Result<Stats, String> {
        let mut simulation = self.simulation(open, boot, None).await;
        simulation.chaos().await?;
        simulation.end().await?;
        simulation.check().await
    }

    /// Runs one real process of the story, by its number: a few moves, and then everything is brought to its
    /// end, if the process lives long enough. The folder keeps the records that the logs do not contain. No
    /// other process may be alive.
    ///
    /// # Errors
    /// Returns a description of the first problem.
    pub async fn live(
        self,
        number: usize,
        open: &Open,
        boot: &Boot,
        folder: &Path,
    ) -> Result<(), String> {
        let mut simulation = self.simulation(open, boot, Some(folder)).await;
        simulation.booted = number;
        free_leases(&*simulation.stores.state).await?;
        let mut slot = simulation.boot(usize::MAX).await;
        let mut rng = Rng::of((self.seed, "live", number));
        for number in 0..rng.below(6) {
            simulation.act(&mut slot, number, &mut rng).await?;
            tokio::time::sleep(Duration::from_millis(rng.roll() % 12)).await;
        }
        simulation.settle(&slot).await?;
        simulation.problems.into_iter().next().map_or(Ok(()), Err)
    }

    /// Checks the tree after the last process. Its engine repeats work as `redelivery` says, and continued the
    /// runs of `engine_recoveries` crashed processes.
    ///
    /// # Errors
    /// Returns a description of all problems.
    pub async fn check(
        self,
        stores: &Stores,
        redelivery: Redelivery,
        engine_recoveries: usize,
        folder: &Path,
    ) -> Result<Stats, String> {
        let noted = Observations {
            answers: Records::new(Some(folder), "answers").all(),
            trace: Records::new(Some(folder), "trace").all(),
            hook_calls: Records::new(Some(folder), "told").all(),
            engine_recoveries,
        };
        check(&*stores.state, &*stores.streams, &self.expected(redelivery), &noted).await
    }

    /// Returns the conditions that the tree must meet on an engine.
    fn expected(self, redelivery: Redelivery) -> Expected {
        let (durability, overlaps) = (self.durability(), redelivery == Redelivery::AtOnce);
        Expected {
            root: ROOT.into(),
            durability,
            redelivery,
            gaps: false,
            overlaps,
            recreated: false,
        }
    }

    async fn simulation<'a>(
        self,
        open: &'a Open,
        boot: &'a Boot,
        folder: Option<&Path>,
    ) -> Simulation<'a> {
        let stores = open().await;
        let trace = Arc::new(Records::new(folder, "trace"));
        let hook_calls = Arc::new(Records::new(folder, "told"));
        let lives = RunProcesses::default();
        let scene = Scene {
            seed: self.seed,
            trace: Arc::clone(&trace),
            hook_calls: Arc::clone(&hook_calls),
            store: Arc::clone(&stores.state),
            lives: lives.clone(),
            tool_concurrency: 8,
            build: 0,
        };
        let family = Family::new(&scene);
        Simulation {
            story: self,
            stores,
            open,
            boot,
            root: Arc::new(family.root.clone()),
            family,
            lives,
            // Real processes must not give the same ids.
            ids: folder.is_none().then(Counted::default),
            answers: Arc::new(Records::new(folder, "answers")),
            trace,
            hook_calls,
            booted: 0,
            redelivery: Redelivery::default(),
            deaths: 0,
            problems: Vec::new(),
        }
    }
}

impl Simulation<'_> {
    fn rng(&self, what: &str) -> Rng {
        Rng::of((self.story.seed, what))
    }

    async fn boot(&mut self, crash_tick: usize) -> Slot {
        self.booted += 1;
        let stores = (self.open)().await;
        let rng = Rng::of((self.story.seed, "life", self.booted));
        let life = ProcessLife::new(self.booted, crash_tick, Pace::default(), rng);
        let process = Process {
            store: Arc::new(ProcessStore {
                inner: stores.state,
                life: life.clone(),
                lives: self.lives.clone(),
            }),
            streams: Arc::new(ProcessStreams { inner: stores.streams, life: life.clone() }),
            llm: Arc::new(TreeLlm {
                seed: self.story.seed,
                root: Arc::clone(&self.root),
                life: life.clone(),
                fails: crash_tick != usize::MAX,
                large_once_in: 0,
            }),
            registry: self.family.registry.clone(),
            ids: self.ids.clone().map(|ids| Arc::new(ids) as Arc<dyn IdSource>),
            durability: self.story.durability(),
        };
        let booted = (self.boot)(process).await;
        self.redelivery = booted.redelivery;
        Slot { life, booted, handles: Vec::new() }
    }

    /// Runs two processes that crash and are replaced, while users and programs act.
    async fn chaos(&mut self) -> Result<(), String> {
        let mut rng = self.rng("chaos");
        let mut slots: [Option<Slot>; 2] = [None, None];
        for number in 0..self.story.moves {
            let which = rng.below(slots.len());
            if slots[which].as_ref().is_some_and(|slot| slot.life.is_over()) {
                self.end_process(slots[which].take()).await?;
            }
            if slots[which].is_none() {
                let crash_tick = if rng.once_in(4) { 1_000_000 } else { 5 + rng.below(600) };
                slots[which] = Some(self.boot(crash_tick).await);
            }
            let Some(slot) = &mut slots[which] else { continue };
            let life = slot.life.clone();
            let acting = Box::pin(self.act(slot, number, &mut rng));
            // The caller is dropped if its process crashes.
            match select(acting, Box::pin(life.over())).await {
                Either::Left((done, _)) => done?,
                Either::Right(_) => {}
            }
            match rng.below(4) {
                0 => tokio::time::sleep(Duration::from_millis(1 + rng.roll() % 300)).await,
                _ => {
                    for _ in 0..rng.below(120) {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
        for slot in slots {
            self.end_process(slot).await?;
        }
        Ok(())
    }

    /// Ends a process and judges the errors of its finished runs.
    async fn end_process(&mut self, slot: Option<Slot>) -> Result<(), String> {
        let Some(slot) = slot else { return Ok(()) };
        self.deaths += 1;
        slot.life.end();
        for handle in slot.handles {
            use futures_util::FutureExt as _;
            if let Some(Err(error)) = handle.result().now_or_never() {
                self.check_error("a run", &error);
            }
        }
        // Live processes keep their leases: an owner that loses its lease unnoticed may repeat effects.
        free_leases_of(&*self.stores.state, |run| self.lives.are_over(run)).await
    }

    fn check_error(&mut self, what: &str, error: &Error) {
        if !is_expected(error.code()) {
            self.problems.push(format!("{what}: {error:?}"));
        }
    }

    /// Executes one move.
    async fn act(&mut self, slot: &mut Slot, number: usize, rng: &mut Rng) -> Result<(), String> {
        let executor = Arc::clone(&slot.booted.executor);
        let root = SessionId::from(ROOT);
        let agent = self.family.agent(&self.family.root.name);
        let kind = if number == 0 { 0 } else { rng.below(14) };
        match kind {
            0 | 1 => {
                let options = ExecuteOptions::default().session(ROOT);
                let text = format!("message {number}");
                match executor.execute(agent, text.into(), options).await {
                    Ok(handle) => slot.handles.push(handle),
                    Err(error) => self.check_error("execute", &error),
                }
            }
            2..=5 => {
                let Ok(pending) = executor.pending_calls(&root).await else { return Ok(()) };
                for view in pending {
                    if rng.once_in(3) {
                        continue;
                    }
                    let fitting = !rng.once_in(10);
                    let times = if rng.once_in(6) { 2 } else { 1 };
                    for _ in 0..times {
                        let given = self.answers.give(&*executor, &root, &view, rng, fitting);
                        if let Err(error) = given.await {
                            self.check_error("submit", &error);
                        }
                    }
                }
            }
            6 | 7 => {
                let resumers = (0..1 + rng.below(3)).map(|_| {
                    let mut options = ResumeOptions::default();
                    if rng.once_in(4) {
                        options = options.message(format!("also {number}"));
                    }
                    executor.resume(Arc::clone(&agent), &root, options)
                });
                for resumed in join_all(resumers.collect::<Vec<_>>()).await {
                    match resumed {
                        Ok(handle) => slot.handles.push(handle),
                        Err(error) => self.check_error("resume", &error),
                    }
                }
            }
            8 | 9 => {
                if let Err(error) = (slot.booted.sweep)().await {
                    self.check_error("sweep", &error);
                }
            }
            10 => {
                // A caller that drops its request while it is pending.
                let yields = rng.below(40);
                let resume = executor.resume(agent, &root, ResumeOptions::default());
                let dropping = async {
                    for _ in 0..yields {
                        tokio::task::yield_now().await;
                    }
                };
                drop(select(resume, Box::pin(dropping)).await);
            }
            _ => {
                let heads = heads(&*self.stores.state, &ROOT.into()).await?;
                let Some(head) = rng.pick(&heads) else { return Ok(()) };
                let session = if rng.once_in(2) { &root } else { &head.session };
                let asked = if rng.once_in(4) {
                    executor.abort(session, Some("enough".to_owned())).await
                } else {
                    executor.interrupt(session, None).await
                };
                if let Err(error) = asked {
                    self.check_error("a request", &error);
                }
            }
        }
        Ok(())
    }

    /// Runs a last process, which does not crash.
    async fn end(&mut self) -> Result<(), String> {
        let slot = self.boot(usize::MAX).await;
        let settled = self.settle(&slot).await;
        slot.life.end();
        settled
    }

    async fn settle(&self, slot: &Slot) -> Result<(), String> {
        let settling = Settling {
            booted: &slot.booted,
            store: &*self.stores.state,
            family: &self.family,
            answers: &self.answers,
        };
        settling.settle(&mut Rng::of((self.story.seed, "settle", self.booted))).await?;
        // Opening a session's stream repairs it.
        for head in heads(&*self.stores.state, &ROOT.into()).await? {
            let looked = async {
                let handle = slot.booted.executor.handle(&head.session).await?;
                // A run of this process shows its end after it is recorded.
                drop(handle.result().await);
                handle.stream().await.map(drop)
            };
            looked.await.map_err(|error: Error| format!("a look: {error:?}"))?;
        }
        Ok(())
    }

    async fn check(self) -> Result<Stats, String> {
        if let Some(problem) = self.problems.first() {
            return Err(problem.clone());
        }
        let noted = Observations {
            answers: self.answers.all(),
            trace: self.trace.all(),
            hook_calls: self.hook_calls.all(),
            engine_recoveries: 0,
        };
        let (state, streams) = (&*self.stores.state, &*self.stores.streams);
        let stats = check(state, streams, &self.story.expected(self.redelivery), &noted).await?;
        Ok(Stats { deaths: self.deaths, ..stats })
    }
}
