//! What a story is made of, drawn by its seed: every seed has its own faults, at its own rates.

use std::fmt;
use std::time::Duration;

use helix_agents_core::budget::Budget;
use helix_agents_core::session::Durability;
use helix_agents_testkit::trees::{Pace, Redelivery, Rng};

/// Whether streams have to be whole where an owner may hand in a result after it was superseded. What it showed
/// of that call was taken back by its successor, and nobody shows it again: the ledger of streams needs a fence
/// for that.
const CHECKS_STREAMS_OF_LATE_OWNERS: bool = true;

/// A kind of fault that a story may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Processes die.
    Kills,
    /// Processes stand still, and go on.
    Stalls,
    /// Models, tools and hooks are slow.
    Slow,
    /// Model calls fail.
    Models,
    /// Requests to the store are lost, or their answers.
    Lost,
    /// Requests take effect a second time, later.
    Doubled,
    /// Requests are late, by minutes sometimes.
    Late,
    /// Processes are cut off from the store.
    Partitions,
    /// Streams are away.
    Streams,
    /// Lists are of a moment ago.
    Stale,
    /// The store's clock jumps.
    Jumps,
    /// Processes of two builds run side by side.
    Builds,
    /// Processes die right before a request to the store, or right after its answer.
    KillsAtRequests,
    /// Requests to streams that are away hang.
    Hangs,
    /// No process can reach the store.
    Outages,
    /// Hooks around runs, model calls and sub-agents are slow.
    SlowHooks,
    /// Snapshots are saved at any moment, and not only of long logs.
    Snapshots,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 17] = [
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
    ];

    /// The fault of that name.
    ///
    /// # Errors
    /// That there is none.
    pub fn parse(name: &str) -> Result<Self, String> {
        let fault = Self::ALL.into_iter().find(|fault| format!("{fault:?}") == name);
        fault.ok_or_else(|| format!("no fault is called `{name}`"))
    }

    fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// What engine executes the runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineKind {
    /// Tasks of the process.
    Local,
    /// Parts, some of which are executed again.
    Parts(Redelivery),
}

/// A story: its seed, and what was taken out of it to find out what it fails by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Story {
    /// Tells everything that is not told below.
    pub seed: u64,
    /// How many things happen before all faults stop.
    pub moves: usize,
    /// How many processes there are at once.
    pub processes: usize,
    /// How many trees of agents there are.
    pub trees: usize,
    faults: u32,
}

impl Story {
    /// The story of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut dice = Rng::of((seed, "knobs"));
        let processes = match dice.below(10) {
            0 => 1,
            1..=5 => 2,
            6..=8 => 3,
            _ => 4 + dice.below(5),
        };
        let trees = if dice.once_in(200) { 10 + dice.below(41) } else { 1 + dice.below(9) / 7 };
        let moves = (4 + dice.below(16)) * trees.min(4);
        // Where all faults happen at once, each hides the others: most stories have a few.
        let often = 2 + dice.below(3);
        let faults = Fault::ALL.into_iter().filter(|_| dice.once_in(often)).map(Fault::bit).sum();
        Self { seed, moves, processes, trees, faults }
    }

    /// Whether it has faults of this kind.
    #[must_use]
    pub fn has(self, fault: Fault) -> bool {
        self.faults & fault.bit() != 0
    }

    /// The story without faults of this kind.
    #[must_use]
    pub fn without(self, fault: Fault) -> Self {
        Self { faults: self.faults & !fault.bit(), ..self }
    }

    /// The dice of this part of the story.
    pub(crate) fn dice(self, of: &str) -> Rng {
        Rng::of((self.seed, of))
    }

    /// How long an owner counts as alive after its last sign of life.
    pub(crate) fn lease(self) -> Duration {
        let mut dice = self.dice("lease");
        Duration::from_millis(match dice.below(4) {
            0 => 300 + dice.below(200),
            1 | 2 => 500 + dice.below(2_500),
            _ => 3_000 + dice.below(27_000),
        } as u64)
    }

    pub(crate) fn durability(self) -> Durability {
        if self.dice("durability").once_in(3) { Durability::PerStep } else { Durability::PerEffect }
    }

    pub(crate) fn engine(self) -> EngineKind {
        match self.dice("engine").below(8) {
            0..=3 => EngineKind::Local,
            4 => EngineKind::Parts(Redelivery::Never),
            5 => EngineKind::Parts(Redelivery::Later),
            6 => EngineKind::Parts(Redelivery::Dropped),
            _ => EngineKind::Parts(Redelivery::AtOnce),
        }
    }

    /// How long models, tools and hooks take: longer than a lease at times.
    pub(crate) fn pace(self) -> Pace {
        let mut dice = self.dice("pace");
        let pace = Pace { once_in: 2 + dice.below(12), at_most: self.lease() * 3, hooks: 0 };
        let hooks = if self.has(Fault::SlowHooks) { 2 + dice.below(6) } else { 0 };
        Pace { once_in: if self.has(Fault::Slow) { pace.once_in } else { 0 }, hooks, ..pace }
    }

    /// After how many requests and answers a process dies.
    pub(crate) fn dies_at(self, process: usize) -> usize {
        let mut dice = self.dice(&format!("end of process {process}"));
        if self.has(Fault::KillsAtRequests) && dice.once_in(2) {
            2 + dice.below(300)
        } else {
            usize::MAX - 1
        }
    }

    pub(crate) fn tool_concurrency(self) -> usize {
        let mut dice = self.dice("concurrency");
        if dice.once_in(2) { 1 } else { 1 + dice.below(8) }
    }

    /// By how much a clock may gain or lose, in microseconds each second.
    pub(crate) fn drift(dice: &mut Rng) -> i32 {
        i32::try_from(dice.below(20_001)).unwrap_or_default() - 10_000
    }

    /// How many model calls each session at the top may make, if that is limited.
    pub(crate) fn budget(self) -> Option<Budget> {
        let mut dice = self.dice("budget");
        let steps = 2 + dice.below(6) as u64;
        dice.once_in(6).then(|| Budget { steps: Some(steps), ..Budget::new() })
    }

    /// How many bytes the store takes in one append.
    pub(crate) fn append_limit(self) -> usize {
        let mut dice = self.dice("append");
        if dice.once_in(4) { 4_000 } else { 64 << 20 }
    }

    /// Whether its streams may be away for so long that runs do not wait for them.
    pub(crate) fn has_gaps(self) -> bool {
        let late = [Fault::Stalls, Fault::Slow, Fault::SlowHooks, Fault::Jumps];
        if !CHECKS_STREAMS_OF_LATE_OWNERS && late.into_iter().any(|fault| self.has(fault)) {
            return true;
        }
        let away = [Fault::Streams, Fault::Lost, Fault::Late, Fault::Partitions, Fault::Outages];
        away.into_iter().any(|fault| self.has(fault))
    }

    /// Stories that are a little simpler, the simplest first.
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

    /// The story that [`Display`](fmt::Display) wrote.
    ///
    /// # Errors
    /// Which word cannot be read.
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
                _ => return Err(format!("cannot read `{word}`")),
            }
        }
        Ok(story)
    }
}

/// The seed, and what of it differs from the story of that seed.
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
