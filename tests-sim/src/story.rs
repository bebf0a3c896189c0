//! Telling a story: moves and faults by chance, then calm, in which everything has to come to its end.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use helix_agents_core::error::Error;
use helix_agents_core::executor::{ExecuteOptions, Resumable, ResumeOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{load, load_events};
use helix_agents_core::store::{Head, SessionStatus};
use helix_agents_testkit::normalise;
use helix_agents_testkit::trees::{
    Expected, Observations, Redelivery, Rng, Stats, check, heads, is_expected,
};
use tokio::time::{Instant, sleep, timeout};

use crate::knobs::{EngineKind, Fault, Story};
use crate::marks::{Mark, Marks};
use crate::moves::{act, befall};
use crate::panics::noticed;
use crate::process::Process;
use crate::wire::LATEST;
use crate::world::World;

/// How long everything may take to come to its end after the last fault, in simulated time, beside
/// forty leases.
const CALM: Duration = Duration::from_secs(600);

/// The longest that a story may take, in simulated time. Without this limit, a deadlock in a story would block the
/// simulation.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

const IN_CIRCLES: &str = "it goes round in circles";
const FOR_EVER: &str = "it waits for something that never happens";

/// The number of lines that are printed of a log that does not end.
const LINES: usize = 60;

/// How often a root is resumed that failed.
const FAILURES: usize = 5;

/// A story that was told.
#[derive(Debug, Default)]
pub struct Told {
    /// What is wrong.
    pub problems: Vec<String>,
    /// The situations that were reached.
    pub marks: Marks,
    /// How much happened.
    pub tally: Stats,
    /// The hash of all that happened.
    pub hash: u64,
    /// All that happened as text, if it was asked for.
    pub lines: Vec<String>,
}

impl Story {
    /// Tells the story on this thread.
    ///
    /// # Panics
    /// If the thread has a tokio runtime already.
    #[must_use]
    pub fn tell(self) -> Told {
        self.tell_as(false)
    }

    /// Tells the story, and writes down all that happens.
    ///
    /// # Panics
    /// As [`tell`](Self::tell).
    #[must_use]
    pub fn tell_as_text(self) -> Told {
        self.tell_as(true)
    }

    fn tell_as(self, text: bool) -> Told {
        let (told, panics) = noticed(|| self.tell_on_this_thread(text));
        let mut told = told.unwrap_or_default();
        told.problems.extend(panics);
        told
    }

    fn tell_on_this_thread(self, text: bool) -> Told {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_time().start_paused(true);
        // Wakes are in an order that tokio draws at random.
        #[cfg(tokio_unstable)]
        builder.rng_seed(tokio::runtime::RngSeed::from_bytes(&self.seed.to_le_bytes()));
        let runtime = builder.build().unwrap();
        runtime.block_on(async {
            let world = World::new(self, text);
            let mut stage = Stage { world, slots: Vec::new(), booted: 0 };
            let told = timeout(LONGEST, stage.tell()).await;
            let world = &stage.world;
            let tally = told.unwrap_or_else(|_| {
                let what = if world.trace.is_too_long() { IN_CIRCLES } else { FOR_EVER };
                Err(what.to_owned())
            });
            let mut problems = world.problems();
            let tally = tally.unwrap_or_else(|problem| {
                problems.push(problem);
                Stats::default()
            });
            let (marks, hash) = (world.reached.all(), world.trace.hash());
            Told { problems, marks, tally, hash, lines: world.trace.lines() }
        })
    }
}

struct Stage {
    world: World,
    slots: Vec<Process>,
    booted: usize,
}

impl Stage {
    async fn tell(&mut self) -> Result<Stats, String> {
        self.chaos().await;
        self.world.calm();
        for process in &self.slots {
            process.life.wake();
        }
        let last = self.boot(usize::MAX);
        self.settle(&last).await?;
        // What is on its way still arrives, and those who were late find out.
        sleep(LATEST * 2 + self.world.story.lease() * 2).await;
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

    fn boot_mortal(&mut self) -> Process {
        let dies_at = self.world.story.dies_at(self.booted + 1);
        self.boot(dies_at)
    }

    /// Notes that a process died at a request, if it did.
    fn note_death(&self, slot: usize) {
        if self.slots[slot].life.died_at_its_tick() {
            self.world.reached.note(Mark::KillAtRequest);
        }
    }

    async fn chaos(&mut self) {
        let story = self.world.story;
        let mut dice = story.dice("chaos");
        for number in 0..story.moves {
            let which = dice.below(story.processes);
            while self.slots.len() <= which {
                let process = self.boot_mortal();
                self.slots.push(process);
            }
            if self.slots[which].life.is_over() {
                self.note_death(which);
                self.slots[which] = self.boot_mortal();
            }
            let process = self.slots[which].clone();
            act(&self.world, &process, number, &mut dice);
            let pause = match dice.below(4) {
                0 => 0,
                1 => dice.below(10),
                2 => dice.below(300),
                _ => dice.below(story.lease().as_millis() as usize * 2),
            };
            sleep(Duration::from_millis(pause as u64)).await;
            if dice.once_in(2) {
                befall(&self.world, &self.slots, &process, &mut dice);
                if dice.once_in(2) {
                    sleep(Duration::from_millis(dice.below(100) as u64)).await;
                }
            }
        }
    }

    /// Answers everything and goes on with everything, until nothing can.
    async fn settle(&self, last: &Process) -> Result<(), String> {
        let limit = story_limit(self.world.story);
        let begun = Instant::now();
        let mut dice = self.world.story.dice("settle");
        let roots: Vec<_> = self.world.roots().collect();
        let mut settling: Vec<_> = roots
            .iter()
            .map(|root| Settling { stage: self, last, root, failures: 0, before: 0, stood: 0 })
            .collect();
        let pause = (self.world.story.lease() / 2).min(Duration::from_secs(2));
        loop {
            if self.world.trace.is_too_long() {
                return Err(IN_CIRCLES.to_owned());
            }
            let mut open = false;
            for tree in &mut settling {
                open |= !tree.round(&mut dice).await?;
            }
            if !open {
                return Ok(());
            }
            if begun.elapsed() > limit {
                return Err(format!("it did not end within {limit:?}\n{}", self.logs().await?));
            }
            if let Err(error) = last.executor.sweep().await {
                expected("sweep", &error)?;
            }
            sleep(pause).await;
        }
    }

    async fn check(&self, last: &Process) -> Result<Stats, String> {
        let again = match self.world.story.engine() {
            EngineKind::Local => Redelivery::Never,
            EngineKind::Parts(again) => again,
        };
        let noted = Observations {
            answers: self.world.answers.all(),
            trace: self.world.executions.all(),
            told: self.world.told.all(),
            outlived: 0,
        };
        let mut sum = Stats { deaths: self.booted - 1, ..Stats::default() };
        for root in self.world.roots() {
            for head in heads(&*self.world.witness, &root).await? {
                // Looking at a session brings its stream into line.
                let looked = async {
                    let handle = last.executor.handle(&head.session).await?;
                    drop(handle.result().await);
                    handle.stream().await.map(drop)
                };
                looked.await.map_err(|error: Error| format!("a look: {error:?}"))?;
            }
            let of_tree = of_tree(&self.world, &root, &noted).await?;
            let durability = self.world.story.durability();
            let gaps = self.world.story.has_gaps();
            let reborn = self.world.witness.is_gone(&root);
            // A request of a part that was dropped may arrive when the part was executed again.
            let overlaps = again == Redelivery::AtOnce
                || (again != Redelivery::Never && self.world.story.has(Fault::Late));
            let expected = Expected { root, durability, again, gaps, overlaps, reborn };
            let (state, streams) = (&*self.world.witness, &*self.world.witness);
            if !expected.reborn {
                let problems = self.world.readers.check(streams, &expected.root).await;
                problems.into_iter().for_each(|problem| self.world.wrong(problem));
            }
            sum += check(state, streams, &expected, &of_tree).await?;
        }
        Ok(sum)
    }

    /// What those did that have not ended.
    async fn logs(&self) -> Result<String, String> {
        let mut text = String::new();
        for root in self.world.roots() {
            for head in heads(&*self.world.witness, &root).await? {
                if !has_ended(&head, 0) {
                    let log = load_events(&*self.world.witness, &head.session, 0).await;
                    let log = normalise::log(&log.map_err(|error| error.to_string())?);
                    let lines: Vec<_> = log.lines().collect();
                    let end = lines[lines.len().saturating_sub(LINES)..].join("\n");
                    _ = writeln!(text, "{} {:?}:\n{end}", head.session, head.summary);
                }
            }
        }
        Ok(text)
    }
}

/// How long the story may take to come to its end after its last fault.
fn story_limit(story: Story) -> Duration {
    // Code that is slow stays so.
    CALM + story.lease()
        * if story.has(Fault::Slow) || story.has(Fault::SlowHooks) { 400 } else { 40 }
}

/// What was noted of one tree.
async fn of_tree(
    world: &World,
    root: &SessionId,
    noted: &Observations,
) -> Result<Observations, String> {
    let sessions: Vec<_> =
        heads(&*world.witness, root).await?.into_iter().map(|head| head.session).collect();
    let mut noted = noted.clone();
    noted.answers.retain(|it| sessions.contains(&it.session));
    noted.trace.retain(|it| sessions.contains(&it.session));
    noted.told.retain(|it| sessions.contains(&it.session));
    if world.witness.is_gone(root) {
        let mut runs = BTreeSet::new();
        for session in &sessions {
            let fold = load(&*world.witness, session).await.map_err(|error| error.to_string())?;
            runs.extend(fold.runs().map(|run| run.id.clone()));
        }
        noted.answers.clear();
        noted.trace.retain(|it| runs.contains(&it.run));
        noted.told.retain(|it| runs.contains(&it.run));
    }
    Ok(noted)
}

/// One tree that is brought to its end.
struct Settling<'a> {
    stage: &'a Stage,
    last: &'a Process,
    root: &'a SessionId,
    failures: usize,
    before: u64,
    stood: usize,
}

impl Settling<'_> {
    /// Does what can be done; whether the tree has ended.
    async fn round(&mut self, dice: &mut Rng) -> Result<bool, String> {
        let witness = &*self.stage.world.witness;
        let heads = heads(witness, self.root).await?;
        if heads.is_empty() {
            return self.execute().await.map(|()| false);
        }
        if heads.iter().all(|head| has_ended(head, self.failures)) {
            return Ok(true);
        }
        let versions = heads.iter().map(|head| head.position.version).sum();
        self.stood = if versions == self.before { self.stood + 1 } else { 0 };
        self.before = versions;
        self.answer_all(dice).await?;
        let head = heads.iter().find(|head| head.session == *self.root);
        let failed = head.is_some_and(|head| head.summary.status == SessionStatus::Failed);
        self.failures += usize::from(failed);
        if !failed || self.failures <= FAILURES {
            self.resume(self.root, &self.last.family.root.name).await?;
        }
        if self.stood > 2 {
            // Companions that were interrupted by themselves are resumed by themselves.
            for head in &heads {
                let interrupted = head.summary.status == SessionStatus::Interrupted;
                if interrupted && head.created.parent.is_some() {
                    self.resume(&head.session, &head.created.agent).await?;
                }
            }
        }
        Ok(false)
    }

    async fn execute(&self) -> Result<(), String> {
        let options = ExecuteOptions::default().session(self.root.clone());
        let agent = self.last.agent();
        match self.last.executor.execute(agent, "Begin.".into(), options).await {
            Ok(handle) => self.stage.world.watch(self.last, handle),
            Err(error) => expected("execute", &error)?,
        }
        Ok(())
    }

    async fn answer_all(&self, dice: &mut Rng) -> Result<(), String> {
        let (executor, world) = (&*self.last.executor, &self.stage.world);
        let Ok(pending) = executor.pending_calls(self.root).await else { return Ok(()) };
        for view in pending {
            if let Err(error) = world.answers.give(executor, self.root, &view, dice, true).await {
                expected("submit", &error)?;
            }
        }
        Ok(())
    }

    async fn resume(&self, session: &SessionId, agent: &str) -> Result<(), String> {
        let (executor, world) = (&*self.last.executor, &self.stage.world);
        match executor.can_resume(session).await {
            Ok(Resumable::Yes) => {}
            Ok(_) => return Ok(()),
            Err(error) => return expected("can_resume", &error),
        }
        world.witness.always().resumes(session, true);
        let agent = self.last.family.agent(agent);
        let resumed = executor.resume(agent, session, ResumeOptions::default()).await;
        world.witness.always().resumes(session, false);
        match resumed {
            Ok(handle) => world.watch(self.last, handle),
            Err(error) => expected("resume", &error)?,
        }
        Ok(())
    }
}

fn expected(what: &str, error: &Error) -> Result<(), String> {
    if is_expected(error.code()) { Ok(()) } else { Err(format!("{what}: {error:?}")) }
}

/// Whether nothing is left to do. A root that failed is resumed a few times; a child that failed has
/// told its parent.
fn has_ended(head: &Head, failures: usize) -> bool {
    match head.summary.status {
        SessionStatus::Completed | SessionStatus::Aborted => true,
        SessionStatus::Failed => head.created.parent.is_some() || failures > FAILURES,
        SessionStatus::Active | SessionStatus::Interrupted => false,
    }
}
