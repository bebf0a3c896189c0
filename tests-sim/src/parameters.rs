//! The parameters of a story, drawn from its seed: every seed has its own faults, at its own rates.

use std::fmt;
use std::time::Duration;

use helix_agents_conformance::rng::Rng;
use helix_agents_core::budget::Budget;
use helix_agents_core::session::Durability;
use helix_agents_testkit::trees::{Pace, Redelivery};

/// Whether streams must be complete although an owner may submit a result after it was superseded. The successor
/// discards what that owner showed of the call, and no run shows it again: the stream store needs fencing for that.
const CHECKS_STREAMS_OF_LATE_OWNERS: bool = true;

/// A kind of fault that a story may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Processes crash.
    Kills,
    /// Processes stall and continue.
    Stalls,
    /// Models, tools and hooks are slow.
    Slow,
    /// Model calls fail.
    Models,
    /// Requests to the store are lost, or their answers are.
    Lost,
    /// Requests take effect a second time, later.
    Doubled,
    /// Requests are late, at times by minutes.
    Late,
    /// Processes are cut off from the store.
    Partitions,
    /// Streams are unavailable.
    Streams,
    /// Lists show an earlier state.
    Stale,
    /// The store's clock jumps.
    Jumps,
    /// Processes of two builds run concurrently.
    Builds,
    /// Processes crash right before a request to the store, or right after its answer.
    KillsAtRequests,
    /// Requests to unavailable streams hang.
    Hangs,
    /// No process can reach the store.
    Outages,
    /// Hooks around runs, model calls and sub-agents are slow.
    SlowHooks,
    /// Snapshots are saved at any moment, and not only of long logs.
    Snapshots,
    /// Tool calls have large arguments, and the state keeps them.
    Large,
    /// Budgets limit tokens or tool calls, and not only model calls.
    Budgets,
    /// Processes stall right before a request to the store or to the streams, and continue.
    StallsAtRequests,
}

impl Fault {
    /// All kinds of faults.
    pub const ALL: [Self; 20] = [
        Self::Kills,
        Self::Stalls,
        Self::Slow,
        Self::Models,
        Self::Lost,
        Self::Doubled,
        Self::Late,
        Self::Partitions,
        Self::Streams,
        Self::Stale,
        Self::Jumps,
        Self::Builds,
        Self::KillsAtRequests,
        Self::Hangs,
        Self::Outages,
        Self::SlowHooks,
        Self::Snapshots,
        Self::Large,
        Self::Budgets,
        Self::StallsAtRequests,
    ];

    /// Returns the fault with this name.
    ///
    /// # Errors
    /// If no fault has this name.
    pub fn parse(name: &str) -> Result<Self, String> {
        let fault = Self::ALL.into_iter().find(|fault| format!("{fault:?}") == name);
        fault.ok_or_else(|| format!("no fault is called `{name}`"))
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The engine that executes the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineKind {
    /// Tasks of the process.
    Local,
    /// Work items, some of which are executed again.
    WorkItems(Redelivery),
}

/// A simulation run: its seed, and what was removed from it to isolate a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Story {
    /// The seed. It determines everything that the other fields do not.
    pub seed: u64,
    /// The number of user actions before all faults stop.
    pub moves: usize,
    /// The number of concurrent processes.
    pub processes: usize,
    /// The number of session trees.
    pub trees: usize,
    faults: u32,
}

impl Story {
    /// Returns the story of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::of((seed, "knobs"));
        let processes = match rng.below(10) {
            0 => 1,
            1..=5 => 2,
            6..=8 => 3,
            _ => 4 + rng.below(5),
        };
        let trees = if rng.once_in(200) { 10 + rng.below(41) } else { 1 + rng.below(9) / 7 };
        // A few stories are long, so that sessions have many turns.
        let length = if Rng::of((seed, "length")).once_in(500) { 20 } else { trees.min(4) };
        let moves = (4 + rng.below(16)) * length;
        // If all faults happened at once, each would hide the others: most stories have a few.
        let often = 2 + rng.below(3);
        let faults = Fault::ALL.into_iter().filter(|_| rng.once_in(often)).map(Fault::bit).sum();
        Self { seed, moves, processes, trees, faults }
    }

    /// Returns `true` if the story has faults of this kind.
    #[must_use]
    pub fn has(self, fault: Fault) -> bool {
        self.faults & fault.bit() != 0
    }

    /// Returns the story without faults of this kind.
    #[must_use]
    pub fn without(self, fault: Fault) -> Self {
        Self { faults: self.faults & !fault.bit(), ..self }
    }

    /// Returns the random numbers of one part of the story.
    pub(crate) fn rng(self, of: &str) -> Rng {
        Rng::of((self.seed, of))
    }

    /// Returns the lease duration: how long an owner counts as alive after its last sign of life.
    pub(crate) fn lease(self) -> Duration {
        let mut rng = self.rng("lease");
        Duration::from_millis(match rng.below(4) {
            0 => 300 + rng.below(200),
            1 | 2 => 500 + rng.below(2_500),
            _ => 3_000 + rng.below(27_000),
        } as u64)
    }

    pub(crate) fn durability(self) -> Durability {
        if self.rng("durability").once_in(3) { Durability::PerStep } else { Durability::PerEffect }
    }

    pub(crate) fn engine(self) -> EngineKind {
        match self.rng("engine").below(8) {
            0..=3 => EngineKind::Local,
            4 => EngineKind::WorkItems(Redelivery::Never),
            5 => EngineKind::WorkItems(Redelivery::Later),
            6 => EngineKind::WorkItems(Redelivery::Dropped),
            _ => EngineKind::WorkItems(Redelivery::AtOnce),
        }
    }

    /// Returns the pace of models, tools and hooks. At times they take longer than a lease.
    pub(crate) fn pace(self) -> Pace {
        let mut rng = self.rng("pace");
        let pace = Pace { once_in: 2 + rng.below(12), at_most: self.lease() * 3, hooks: 0 };
        let hooks = if self.has(Fault::SlowHooks) { 2 + rng.below(6) } else { 0 };
        Pace { once_in: if self.has(Fault::Slow) { pace.once_in } else { 0 }, hooks, ..pace }
    }

    /// Returns the number of requests and answers after which a process crashes.
    pub(crate) fn dies_at(self, process: usize) -> usize {
        let mut rng = self.rng(&format!("end of process {process}"));
        if self.has(Fault::KillsAtRequests) && rng.once_in(2) {
            2 + rng.below(300)
        } else {
            usize::MAX - 1
        }
    }

    pub(crate) fn tool_concurrency(self) -> usize {
        let mut rng = self.rng("concurrency");
        if rng.once_in(2) { 1 } else { 1 + rng.below(8) }
    }

    /// Returns the drift of a clock, in microseconds per second.
    pub(crate) fn drift(rng: &mut Rng) -> i32 {
        i32::try_from(rng.below(20_001)).unwrap_or_default() - 10_000
    }

    /// Returns the budget of each root session, if the story has one.
    pub(crate) fn budget(self) -> Option<Budget> {
        let mut rng = self.rng("budget");
        let limit = 2 + rng.below(6) as u64;
        rng.once_in(6).then(|| match self.rng("kind of budget").below(3) {
            0 if self.has(Fault::Budgets) => Budget::new().tool_calls(limit),
            1 if self.has(Fault::Budgets) => Budget::new().tokens(limit * 30),
            _ => Budget::new().steps(limit),
        })
    }

    /// Returns how often tool calls have large arguments: one in this many, or none if it is 0.
    pub(crate) fn large_once_in(self) -> usize {
        if self.has(Fault::Large) { 1 + self.rng("large arguments").below(6) } else { 0 }
    }

    /// Returns the largest append that the store accepts, in bytes.
    pub(crate) fn append_limit(self) -> usize {
        let mut rng = self.rng("append");
        if rng.once_in(4) { 4_000 } else { 64 << 20 }
    }

    /// Returns `true` if streams may be unavailable for so long that runs do not wait for them.
    pub(crate) fn has_gaps(self) -> bool {
        let late =
            [Fault::Stalls, Fault::StallsAtRequests, Fault::Slow, Fault::SlowHooks, Fault::Jumps];
        if !CHECKS_STREAMS_OF_LATE_OWNERS && late.into_iter().any(|fault| self.has(fault)) {
            return true;
        }
        let away = [Fault::Streams, Fault::Lost, Fault::Late, Fault::Partitions, Fault::Outages];
        away.into_iter().any(|fault| self.has(fault))
    }

    /// Returns slightly simpler stories, the simplest first.
    pub(crate) fn simpler(self) -> Vec<Self> {
        let mut simpler = Vec::new();
        for moves in [self.moves / 4, self.moves / 2, self.moves * 3 / 4, self.moves - 1] {
            if (1..self.moves).contains(&moves) {
                simpler.push(Self { moves, ..self });
            }
        }
        if self.trees > 1 {
            simpler.push(Self { trees: 1, ..self });
            simpler.push(Self { trees: self.trees - 1, ..self });
        }
        if self.processes > 1 {
            simpler.push(Self { processes: self.processes - 1, ..self });
        }
        let faults = Fault::ALL.into_iter().filter(|fault| self.has(*fault));
        simpler.extend(faults.map(|fault| self.without(fault)));
        simpler
    }

    /// Parses the text that [`Display`](fmt::Display) writes.
    ///
    /// # Errors
    /// If a word cannot be parsed. The error names the word.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let seed = words.next().and_then(|word| word.parse().ok());
        let mut story = Self::new(seed.ok_or_else(|| format!("no seed in `{text}`"))?);
        for word in words {
            let number = |text: &str| text.parse().map_err(|_| format!("no number in `{word}`"));
            match word.split_once('=') {
                Some(("moves", value)) => story.moves = number(value)?,
                Some(("processes", value)) => story.processes = number(value)?,
                Some(("trees", value)) => story.trees = number(value)?,
                Some(("without", names)) => {
                    for name in names.split(',') {
                        story = story.without(Fault::parse(name)?);
                    }
                }
                _ => return Err(format!("cannot parse `{word}`")),
            }
        }
        Ok(story)
    }
}

/// Writes the seed, and what differs from the original story of that seed.
impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = Self::new(self.seed);
        write!(f, "{}", self.seed)?;
        if self.moves != whole.moves {
            write!(f, " moves={}", self.moves)?;
        }
        if self.processes != whole.processes {
            write!(f, " processes={}", self.processes)?;
        }
        if self.trees != whole.trees {
            write!(f, " trees={}", self.trees)?;
        }
        let gone = Fault::ALL.into_iter().filter(|fault| whole.has(*fault) && !self.has(*fault));
        let gone: Vec<_> = gone.map(|fault| format!("{fault:?}")).collect();
        if !gone.is_empty() {
            write!(f, " without={}", gone.join(","))?;
        }
        Ok(())
    }
}
