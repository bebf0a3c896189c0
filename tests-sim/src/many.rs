//! Runs many stories, one at a time on each core.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use helix_agents_testkit::trees::Stats;

use crate::marks::Marks;
use crate::parameters::{Fault, Story};
use crate::story::Outcome;

/// Every story whose number is a multiple of this is run twice, unless a plan has another value.
const REPEAT_EVERY: u64 = 100;

/// The number of kinds of problems after which no more stories are run.
const MAX_KINDS: usize = 20;

/// The number of failed stories after which no more stories are run.
const MAX_FAILURES: u64 = 500;

/// A story that takes longer in real time is reported as slow.
const SLOW_STORY: Duration = Duration::from_secs(5);

/// The number of stories that are tried to simplify a failed one.
const MAX_SHRINKS: usize = 200;

/// The stories to run, and the limits.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The first seed. The other seeds follow it.
    pub first: u64,
    /// The maximum number of stories.
    pub stories: u64,
    /// The maximum time.
    pub time: Duration,
    /// Faults that are removed from all stories.
    pub without: Vec<Fault>,
    /// The number of kinds of problems after which no more stories are run.
    pub kinds: usize,
    /// Whether failed stories are simplified.
    pub simplify: bool,
    /// One in this many stories is run twice: both executions must be identical.
    pub twice: u64,
    /// The number of threads. Without it there is one per core.
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
            kinds: MAX_KINDS,
            simplify: true,
            twice: REPEAT_EVERY,
            threads,
        }
    }
}

/// The outcome of many stories.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of executed stories.
    pub stories: u64,
    /// The elapsed real time.
    pub took: Duration,
    /// The situations that were reached.
    pub marks: Marks,
    /// Counters of what happened.
    pub stats: Stats,
    /// The slow stories.
    pub slow: Vec<Story>,
    /// The CPU time of this process.
    pub cpu: Duration,
    /// The failed stories: one of each kind of problem, simplified if possible.
    pub failed: Vec<Failure>,
}

/// A failed story.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The simplest story with this problem.
    pub story: Story,
    /// The problems, one per line.
    pub problem: String,
    /// The number of stories with this kind of problem.
    pub times: u64,
}

impl Failure {
    /// Returns the failure of a story.
    #[must_use]
    pub fn new(story: Story, problems: &[String]) -> Self {
        Self { story, problem: problems.join("\n"), times: 1 }
    }

    /// Returns the first problem without the parts that differ between stories.
    fn kind(&self) -> String {
        let first = self.problem.lines().next().unwrap_or_default();
        let text = first.split_once(": ").map_or(first, |(_, text)| text);
        text.chars().filter(|letter| !letter.is_ascii_digit()).take(60).collect()
    }
}

impl Report {
    /// Returns the number of stories per second of real time.
    #[must_use]
    pub fn pace(&self) -> f64 {
        self.stories as f64 / self.took.as_secs_f64().max(1e-9)
    }
}

/// Runs a story. If it is run twice, both executions must be identical.
#[must_use]
pub fn try_out(story: Story, twice: bool) -> Outcome {
    if !twice {
        return story.run();
    }
    let mut outcome = story.run_with_trace();
    let again = story.run_with_trace();
    if again.lines != outcome.lines {
        outcome.problems.push(difference(&outcome.lines, &again.lines));
    }
    outcome
}

/// Returns the CPU time that this process has used, or zero where the system does not report it.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    // utime and stime, in hundredths of a second.
    let ticks = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// Returns the first difference between two executions of a story.
fn difference(one: &[String], other: &[String]) -> String {
    let at = one.iter().zip(other).position(|(one, other)| one != other);
    let at = at.unwrap_or_else(|| one.len().min(other.len()));
    let (one, other) = (one.get(at), other.get(at));
    format!("two executions of the story differ at {at}:\n{one:?}\n{other:?}")
}

/// Returns the simplest story that fails in the same way.
#[must_use]
pub fn simplest(failure: Failure) -> Failure {
    let mut simplest = failure;
    let mut left = MAX_SHRINKS;
    'again: loop {
        for story in simplest.story.simpler() {
            if left == 0 {
                return simplest;
            }
            left -= 1;
            let found = Failure::new(story, &story.run().problems);
            if found.kind() == simplest.kind() {
                simplest = Failure { times: simplest.times, ..found };
                continue 'again;
            }
        }
        return simplest;
    }
}

/// Runs many stories on all cores.
///
/// # Panics
/// If a story panics.
#[must_use]
pub fn run_many(plan: &Plan) -> Report {
    let started = Instant::now();
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
            let enough = known.len() >= plan.kinds || failed >= MAX_FAILURES;
            drop(known);
            if number >= plan.stories || started.elapsed() > plan.time || enough {
                return report;
            }
            let story = Story::new(plan.first.wrapping_add(number));
            let story = plan.without.iter().fold(story, |story, fault| story.without(*fault));
            report.stories += 1;
            let since = Instant::now();
            let outcome = try_out(story, number.is_multiple_of(plan.twice));
            if since.elapsed() > SLOW_STORY {
                report.slow.push(story);
            }
            report.stats += outcome.stats;
            report.marks += &outcome.marks;
            if !outcome.problems.is_empty() {
                let failure = Failure::new(story, &outcome.problems);
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
            report.stats += part.stats;
            report.marks += &part.marks;
            report.slow.extend(part.slow);
        }
    });
    report.took = started.elapsed();
    report.cpu = cpu_time().saturating_sub(cpu);
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    report.failed = failures.into_values().collect();
    report
}

/// Parses the stories of a file: one per line. Text after a `#` is a comment.
///
/// # Errors
/// If a line cannot be parsed.
pub fn parse_known(text: &str) -> Result<Vec<Story>, String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(Story::parse).collect()
}

/// Returns the lines of a file of known stories for these failures.
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
