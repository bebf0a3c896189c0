//! A world: the store, the processes, and what they were seen to do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use helix_agents_core::clock::IdSource;
use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::executor::RunHandle;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::StateStore;
use helix_agents_testkit::trees::{
    Answers, Counted, Execution, Family, HookCall, Node, ProcessLife, Records, RunProcesses, Scene,
    TreeLlm, is_expected,
};

use crate::always::Always;
use crate::knobs::{Fault, Story};
use crate::marks::{Mark, Reached};
use crate::plans::with_plans;
use crate::process::{Parts, Process};
use crate::readers::Readers;
use crate::time::SimClock;
use crate::trace::Trace;
use crate::wire::Wire;
use crate::witness::Witness;

/// One hour of the wall clock: so far may the clock of a process be off.
const HOUR: i64 = 3_600_000;

/// What all parts of a story share. Clones are of the same world.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) story: Story,
    pub(crate) witness: Arc<Witness>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) reached: Reached,
    /// The agents, as each build of the program has them.
    families: [Arc<Family>; 2],
    pub(crate) root: Arc<Node>,
    pub(crate) answers: Answers,
    pub(crate) executions: Arc<Records<Execution>>,
    pub(crate) told: Arc<Records<HookCall>>,
    pub(crate) readers: Readers,
    lives: RunProcesses,
    ids: Counted,
    calm: Arc<AtomicBool>,
    problems: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn new(story: Story, text: bool) -> Self {
        let trace = Arc::new(Trace::of_text(text));
        let (reached, lives) = (Reached::default(), RunProcesses::default());
        let mut dice = story.dice("store clock");
        let clock = SimClock::new(0, Story::drift(&mut dice), None, Arc::clone(&trace));
        let always = Always::new(lives.clone(), story.lease(), reached.clone());
        let witness =
            Witness::new(clock, Arc::clone(&trace), reached.clone(), always, story.append_limit());
        let (executions, told) =
            (Arc::new(Records::new(None, "trace")), Arc::new(Records::new(None, "told")));
        let scene = Scene {
            seed: story.seed,
            trace: Arc::clone(&executions),
            told: Arc::clone(&told),
            store: Arc::<Witness>::clone(&witness) as Arc<dyn StateStore>,
            lives: lives.clone(),
            tool_concurrency: story.tool_concurrency(),
            build: 0,
        };
        let later = Scene { build: 1, tool_concurrency: 3, ..scene.clone() };
        let family = Arc::new(Family::new(&scene));
        let has_builds = story.has(Fault::Builds);
        let later = if has_builds { Arc::new(Family::new(&later)) } else { Arc::clone(&family) };
        let families = [family, later];
        Self {
            story,
            witness,
            trace,
            reached,
            root: Arc::new(families[0].root.clone()),
            families,
            answers: Arc::new(Records::new(None, "answers")),
            executions,
            told,
            readers: Readers::default(),
            lives,
            ids: Counted::default(),
            calm: Arc::default(),
            problems: Arc::default(),
        }
    }

    /// The sessions at the top of its trees, and the forks of them.
    pub(crate) fn roots(&self) -> impl Iterator<Item = SessionId> + use<> {
        let trees = 0..self.story.trees;
        let trees = trees.map(|number| SessionId::from(format!("root-{number}")));
        trees.chain(self.witness.forks())
    }

    /// Begins a process that dies after so many things it does.
    pub(crate) fn boot(&self, number: usize, dies_at: usize) -> Process {
        let story = self.story;
        let mut dice = story.dice(&format!("process {number}"));
        let life = ProcessLife::new(number, dies_at, story.pace(), dice.clone());
        let ahead = i64::try_from(dice.roll() % (2 * HOUR as u64)).unwrap_or_default() - HOUR;
        let drift = Story::drift(&mut dice);
        let build = usize::from(story.has(Fault::Builds) && dice.once_in(2));
        let family = &self.families[build];
        if build > 0 {
            self.reached.note(Mark::Upgrade);
        }
        let clock = SimClock::new(ahead, drift, Some(life.clone()), Arc::clone(&self.trace));
        let llm = TreeLlm {
            seed: story.seed,
            root: Arc::clone(&self.root),
            life: life.clone(),
            fails: story.has(Fault::Models) && dies_at != usize::MAX,
        };
        let llm = with_plans(story, Arc::new(llm), family, &life, &self.reached).unwrap();
        let wire = Wire::new(
            Arc::clone(&self.witness),
            life,
            self.lives.clone(),
            story,
            self.reached.clone(),
            Arc::clone(&self.calm),
        );
        let parts = Parts {
            story,
            wire,
            clock,
            llm,
            family: Arc::clone(family),
            ids: Arc::new(self.ids.clone()) as Arc<dyn IdSource>,
            reached: self.reached.clone(),
        };
        Process::boot(parts).unwrap()
    }

    /// Ends all faults of networks.
    pub(crate) fn calm(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    /// Notes what is wrong.
    pub(crate) fn wrong(&self, problem: String) {
        self.noted().push(problem);
    }

    /// What is wrong so far.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.witness.always().problems.clone();
        problems.extend(self.noted().iter().cloned());
        problems
    }

    fn noted(&self) -> MutexGuard<'_, Vec<String>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges an error that a caller in a process got: what others did first is no problem, nor that
    /// a store cannot answer that is away, nor that a process does nothing more that shuts down.
    pub(crate) fn judge(&self, process: &Process, what: &str, error: &Error) {
        let number = process.life.number();
        let passing = error.is_retryable() || error.code() == ErrorCode::Closed;
        // The handle of a run reports an error that the run had earlier.
        let was_away = match what {
            "a run" => self.witness.always().was_troubled(number),
            _ => !self.witness.always().is_healthy(number),
        };
        let excused = passing && was_away;
        let lost = matches!(error.code(), ErrorCode::RunNotFound | ErrorCode::HistoryLost);
        let is_gone = lost && self.witness.is_any_gone();
        // A child may have ended after the run began that waits for it, by a clock that went back: the two resume
        // each other without pause until the clock is there again.
        let is_busy = error.code() == ErrorCode::StoreBusy && self.story.has(Fault::Jumps);
        if !is_expected(error.code()) && !excused && !is_gone && !is_busy {
            self.wrong(format!("{what} in process {number}: {error:?}"));
        }
    }

    /// Watches a run that was begun, as long as its process lives.
    pub(crate) fn watch(&self, process: &Process, handle: RunHandle) {
        let (world, process) = (self.clone(), process.clone());
        drop(tokio::spawn(async move {
            let ended = select(Box::pin(handle.result()), Box::pin(process.life.over())).await;
            if let Either::Left((Err(error), _)) = ended {
                world.judge(&process, "a run", &error);
            }
        }));
    }

    /// Does something in a process beside all else, until the process dies.
    pub(crate) fn beside(&self, process: &Process, act: impl Future<Output = ()> + Send + 'static) {
        let life = process.life.clone();
        drop(tokio::spawn(async move {
            drop(select(Box::pin(act), Box::pin(life.over())).await);
        }));
    }

    /// Notes that a process cannot show that it is alive for so long.
    pub(crate) fn trouble(&self, process: &Process, lasts: Duration) {
        self.witness.always().trouble(process.life.number(), lasts);
    }
}
