//! A world: the store, the processes, and the records of what they did.

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

use crate::checked_store::CheckedStore;
use crate::invariants::Invariants;
use crate::marks::{Mark, Reached};
use crate::parameters::{Fault, Story};
use crate::plans::with_plans;
use crate::process::{Process, ProcessConfig};
use crate::readers::Readers;
use crate::time::SimClock;
use crate::trace::Trace;
use crate::wire::Wire;

/// One hour, in milliseconds: the maximum offset of a process's wall clock.
const HOUR: i64 = 3_600_000;

/// The state that all parts of a story share. Clones refer to the same world.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) story: Story,
    pub(crate) store: Arc<CheckedStore>,
    pub(crate) trace: Arc<Trace>,
    pub(crate) reached: Reached,
    /// The agents of each build of the program.
    families: [Arc<Family>; 2],
    pub(crate) root: Arc<Node>,
    pub(crate) answers: Answers,
    pub(crate) executions: Arc<Records<Execution>>,
    pub(crate) hook_calls: Arc<Records<HookCall>>,
    pub(crate) readers: Readers,
    lives: RunProcesses,
    ids: Counted,
    calm: Arc<AtomicBool>,
    problems: Arc<Mutex<Vec<String>>>,
}

impl World {
    pub(crate) fn new(story: Story, text: bool) -> Self {
        let trace = Arc::new(Trace::new(story.trees, text));
        let (reached, lives) = (Reached::default(), RunProcesses::default());
        let mut rng = story.rng("store clock");
        let clock = SimClock::new(0, Story::drift(&mut rng), None, Arc::clone(&trace));
        let invariants = Invariants::new(lives.clone(), story.lease(), reached.clone());
        let store = CheckedStore::new(
            clock,
            Arc::clone(&trace),
            reached.clone(),
            invariants,
            story.append_limit(),
        );
        let (executions, hook_calls) =
            (Arc::new(Records::new(None, "trace")), Arc::new(Records::new(None, "told")));
        let scene = Scene {
            seed: story.seed,
            trace: Arc::clone(&executions),
            hook_calls: Arc::clone(&hook_calls),
            store: Arc::<CheckedStore>::clone(&store) as Arc<dyn StateStore>,
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
            store,
            trace,
            reached,
            root: Arc::new(families[0].root.clone()),
            families,
            answers: Arc::new(Records::new(None, "answers")),
            executions,
            hook_calls,
            readers: Readers::default(),
            lives,
            ids: Counted::default(),
            calm: Arc::default(),
            problems: Arc::default(),
        }
    }

    /// Returns the root sessions and their forks.
    pub(crate) fn roots(&self) -> impl Iterator<Item = SessionId> + use<> {
        let trees = 0..self.story.trees;
        let trees = trees.map(|number| SessionId::from(format!("root-{number}")));
        trees.chain(self.store.forks())
    }

    /// Starts a process that crashes after the given number of actions.
    pub(crate) fn boot(&self, number: usize, dies_at: usize) -> Process {
        let story = self.story;
        let mut rng = story.rng(&format!("process {number}"));
        let life = ProcessLife::new(number, dies_at, story.pace(), rng.clone());
        let offset = i64::try_from(rng.roll() % (2 * HOUR as u64)).unwrap_or_default() - HOUR;
        let drift = Story::drift(&mut rng);
        let build = usize::from(story.has(Fault::Builds) && rng.once_in(2));
        let family = &self.families[build];
        if build > 0 {
            self.reached.note(Mark::Upgrade);
        }
        let clock = SimClock::new(offset, drift, Some(life.clone()), Arc::clone(&self.trace));
        let llm = TreeLlm {
            seed: story.seed,
            root: Arc::clone(&self.root),
            life: life.clone(),
            fails: story.has(Fault::Models) && dies_at != usize::MAX,
            large_once_in: story.large_once_in(),
        };
        let llm = with_plans(story, Arc::new(llm), family, &life, &self.reached).unwrap();
        let wire = Wire::new(
            Arc::clone(&self.store),
            life,
            self.lives.clone(),
            story,
            self.reached.clone(),
            Arc::clone(&self.calm),
        );
        let config = ProcessConfig {
            story,
            wire,
            clock,
            llm,
            family: Arc::clone(family),
            ids: Arc::new(self.ids.clone()) as Arc<dyn IdSource>,
            reached: self.reached.clone(),
        };
        Process::boot(config).unwrap()
    }

    /// Stops all network faults.
    pub(crate) fn calm(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    /// Records a problem.
    pub(crate) fn add_problem(&self, problem: String) {
        self.lock_problems().push(problem);
    }

    /// Returns the problems so far.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.store.invariants().problems.clone();
        problems.extend(self.lock_problems().iter().cloned());
        problems
    }

    fn lock_problems(&self) -> MutexGuard<'_, Vec<String>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Judges an error that a caller in a process received. It is no problem if another caller was first, if the store
    /// was unavailable, or if the process was shutting down.
    pub(crate) fn check_error(&self, process: &Process, what: &str, error: &Error) {
        let number = process.life.number();
        let transient = error.is_retryable() || error.code() == ErrorCode::Closed;
        // A run handle reports an error that the run had earlier.
        let had_trouble = match what {
            "a run" => self.store.invariants().had_trouble(number),
            _ => !self.store.invariants().is_healthy(number),
        };
        let excused = transient && had_trouble;
        // A caller may have seen a session that was deleted, and another one has its id now.
        let lost = matches!(
            error.code(),
            ErrorCode::RunNotFound | ErrorCode::HistoryLost | ErrorCode::ArgumentsChanged
        );
        let is_gone = lost && self.store.is_any_gone();
        // By a clock that went back, a child may have ended after its waiting parent run started. The two resume each
        // other continuously until the clock has caught up.
        let is_busy = error.code() == ErrorCode::StoreBusy && self.story.has(Fault::Jumps);
        if !is_expected(error.code()) && !excused && !is_gone && !is_busy {
            self.add_problem(format!("{what} in process {number}: {error:?}"));
        }
    }

    /// Watches a run until it ends or its process crashes.
    pub(crate) fn watch(&self, process: &Process, handle: RunHandle) {
        let (world, process) = (self.clone(), process.clone());
        drop(tokio::spawn(async move {
            let ended = select(Box::pin(handle.result()), Box::pin(process.life.over())).await;
            if let Either::Left((Err(error), _)) = ended {
                world.check_error(&process, "a run", &error);
            }
        }));
    }

    /// Spawns an action in a process. It is dropped when the process crashes.
    pub(crate) fn spawn(&self, process: &Process, act: impl Future<Output = ()> + Send + 'static) {
        let life = process.life.clone();
        drop(tokio::spawn(async move {
            drop(select(Box::pin(act), Box::pin(life.over())).await);
        }));
    }

    /// Records that a process cannot renew its leases for the given time.
    pub(crate) fn record_trouble(&self, process: &Process, lasts: Duration) {
        self.store.invariants().record_trouble(process.life.number(), lasts);
    }
}
