//! Many stories, one at a time on each core.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use helix_agents_testkit::trees::Stats;

use crate::knobs::{Fault, Story};
use crate::marks::Marks;
use crate::story::Told;

/// One story in so many is told twice, unless a plan says otherwise.
const TWICE: u64 = 100;

/// How many kinds of problems are looked for before the rest is left.
const MOST_KINDS: usize = 20;

/// How many stories may fail before the rest is left.
const MOST_FAILURES: u64 = 500;

/// A story that takes longer in real time is worth a look.
const SLOW: Duration = Duration::from_secs(5);

/// How many stories are told to find a simpler one that fails, too.
const SHRINKS: usize = 200;

/// How many stories to tell.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The first seed; the others follow.
    pub first: u64,
    /// At most so many stories.
    pub stories: u64,
    /// At most so long.
    pub time: Duration,
    /// Faults that they are told without.
    pub without: Vec<Fault>,
    /// After how many kinds of problems the rest is left.
    pub kinds: usize,
    /// Whether what fails is made simpler.
    pub simplify: bool,
    /// One story in so many is told twice: both tellings must agree in everything that happened.
    pub twice: u64,
    /// How many are told at once; one on each core without a number.
    pub threads: Option<usize>,
}

impl Default for Plan {
    fn default() -> Self {
        let (stories, time) = (u64::MAX, Duration::MAX);
        let (without, threads) = Default::default();
        Self {
            first: 0,
            stories,
            time,
            without,
            kinds: MOST_KINDS,
            simplify: true,
            twice: TWICE,
            threads,
        }
    }
}

/// What came of many stories.
#[derive(Debug, Default)]
pub struct Report {
    /// How many were told.
    pub stories: u64,
    /// How long that took.
    pub took: Duration,
    /// The situations that were reached.
    pub marks: Marks,
    /// How much happened.
    pub tally: Stats,
    /// The stories that took long.
    pub slow: Vec<Story>,
    /// How much time of processors that took.
    pub cpu: Duration,
    /// The stories that failed: of each kind of problem one, as simple as it could be made.
    pub failed: Vec<Failure>,
}

/// A story that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The simplest story that fails, made of the one that was told.
    pub story: Story,
    /// What is wrong.
    pub problem: String,
    /// How many stories failed in this way.
    pub times: u64,
}

impl Failure {
    /// That a story failed.
    #[must_use]
    pub fn new(story: Story, problems: &[String]) -> Self {
        Self { story, problem: problems.join("\n"), times: 1 }
    }

    /// Its first problem without what differs between stories.
    fn kind(&self) -> String {
        let first = self.problem.lines().next().unwrap_or_default();
        let text = first.split_once(": ").map_or(first, |(_, text)| text);
        text.chars().filter(|it| !it.is_ascii_digit()).take(60).collect()
    }
}

impl Report {
    /// Stories in a second of real time.
    #[must_use]
    pub fn pace(&self) -> f64 {
        self.stories as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Tells a story. One that is told twice has to happen twice.
#[must_use]
pub fn try_out(story: Story, twice: bool) -> Told {
    if !twice {
        return story.tell();
    }
    let mut told = story.tell_as_text();
    let again = story.tell_as_text();
    if again.hash != told.hash {
        told.problems.push(difference(&told.lines, &again.lines));
    }
    told
}

/// The time of processors that this program has taken, where the system tells it.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // utime and stime, in hundredths of a second.
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// Where two tellings of a story part.
fn difference(one: &[String], other: &[String]) -> String {
    let at = one.iter().zip(other).position(|(one, other)| one != other);
    let at = at.unwrap_or_else(|| one.len().min(other.len()));
    let (one, other) = (one.get(at), other.get(at));
    format!("told twice it happens differently, at {at}:\n{one:?}\n{other:?}")
}

/// The simplest story that fails as well.
#[must_use]
pub fn simplest(failure: Failure) -> Failure {
    let mut simplest = failure;
    let mut left = SHRINKS;
    'again: loop {
        for story in simplest.story.simpler() {
            if left == 0 {
                return simplest;
            }
            left -= 1;
            let found = Failure::new(story, &story.tell().problems);
            if found.kind() == simplest.kind() {
                simplest = Failure { times: simplest.times, ..found };
                continue 'again;
            }
        }
        return simplest;
    }
}

/// Tells many stories on all cores.
///
/// # Panics
/// If a story does.
#[must_use]
pub fn tell_many(plan: &Plan) -> Report {
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let cpu = cpu_time();
    let failures = Mutex::new(BTreeMap::<String, Failure>::new());
    let lock = || failures.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        let mut report = Report::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let known = lock();
            let failed = known.values().map(|failure| failure.times).sum::<u64>();
            let enough = known.len() >= plan.kinds || failed >= MOST_FAILURES;
            drop(known);
            if number >= plan.stories || begun.elapsed() > plan.time || enough {
                return report;
            }
            let story = Story::new(plan.first.wrapping_add(number));
            let story = plan.without.iter().fold(story, |story, fault| story.without(*fault));
            report.stories += 1;
            let since = Instant::now();
            let told = try_out(story, number.is_multiple_of(plan.twice));
            if since.elapsed() > SLOW {
                report.slow.push(story);
            }
            report.tally += told.tally;
            report.marks += &told.marks;
            if !told.problems.is_empty() {
                let failure = Failure::new(story, &told.problems);
                if let Some(known) = lock().get_mut(&failure.kind()) {
                    known.times += 1;
                    continue;
                }
                let kind = failure.kind();
                lock().insert(kind.clone(), failure.clone());
                if plan.simplify {
                    let Failure { story, problem, .. } = simplest(failure);
                    if let Some(known) = lock().get_mut(&kind) {
                        (known.story, known.problem) = (story, problem);
                    }
                }
            }
        }
    };
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = plan.threads.unwrap_or(all);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let part = worker.join().unwrap();
            report.stories += part.stories;
            report.tally += part.tally;
            report.marks += &part.marks;
            report.slow.extend(part.slow);
        }
    });
    report.took = begun.elapsed();
    report.cpu = cpu_time().saturating_sub(cpu);
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.failed = failures.into_values().collect();
    report
}

/// The stories of a file: one in each line, and what follows a `#` is for people.
///
/// # Errors
/// Which line cannot be read.
pub fn parse_known(text: &str) -> Result<Vec<Story>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(Story::parse).collect()
}

/// The lines of a file of known stories for these failures.
#[must_use]
pub fn known_lines(failures: &[Failure], commit: &str) -> String {
    let mut lines = String::new();
    for Failure { story, problem, .. } in failures {
        let problem: String =
            problem.lines().next().unwrap_or_default().chars().take(120).collect();
        _ = writeln!(lines, "{story}  # {commit}: {problem}");
    }
    lines
}
