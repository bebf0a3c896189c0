//! Many stories, one at a time on each core.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use helix_agents_testkit::trees::Tally;

use crate::knobs::{Fault, Story};
use crate::marks::Marks;
use crate::story::Told;

/// One story in so many is told twice: both tellings must agree in everything that happened.
const TWICE: u64 = 100;

/// How many problems of one kind are looked at before the rest is left.
const MOST_FAILURES: usize = 20;

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
    pub tally: Tally,
    /// The stories that failed, each as simple as it could be made.
    pub failed: Vec<Failure>,
}

/// A story that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The simplest story that fails, made of the one that was told.
    pub story: Story,
    /// What is wrong.
    pub problem: String,
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
            let problems = story.tell().problems;
            if !problems.is_empty() {
                simplest = Failure { story, problem: problems.join("\n") };
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
    let failures = Mutex::new(Vec::new());
    let work = || {
        let mut report = Report::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let found = failures.lock().unwrap_or_else(PoisonError::into_inner).len();
            if number >= plan.stories || begun.elapsed() > plan.time || found >= MOST_FAILURES {
                return report;
            }
            let story = Story::new(plan.first.wrapping_add(number));
            let story = plan.without.iter().fold(story, |story, fault| story.without(*fault));
            report.stories += 1;
            let told = try_out(story, number.is_multiple_of(TWICE));
            report.tally += told.tally;
            report.marks += &told.marks;
            if !told.problems.is_empty() {
                let problem = told.problems.join("\n");
                let failure = simplest(Failure { story, problem });
                failures.lock().unwrap_or_else(PoisonError::into_inner).push(failure);
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let part = worker.join().unwrap();
            report.stories += part.stories;
            report.tally += part.tally;
            report.marks += &part.marks;
        }
    });
    report.took = begun.elapsed();
    report.failed = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
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
    for Failure { story, problem } in failures {
        let problem: String =
            problem.lines().next().unwrap_or_default().chars().take(120).collect();
        _ = writeln!(lines, "{story}  # {commit}: {problem}");
    }
    lines
}
