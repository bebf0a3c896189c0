//! Many stories, on clocks that never wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{Boot, Open, Stats, Story};

/// A function that creates the stores of one story. The function that it returns opens them for each process.
pub type Fresh = dyn Fn() -> Box<Open> + Sync;

/// Runs a story on the current thread, on a clock that never waits.
#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn run(story: Story, fresh: &Fresh, boot: &Boot) -> Result<Stats, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a thread");
    runtime.block_on(story.run(&*fresh(), boot))
}

/// Finds the shortest prefix of the story that also fails, and returns its problem.
fn shortest(story: Story, fresh: &Fresh, boot: &Boot, problem: String) -> String {
    let wrong = (1..story.moves).find_map(|moves| {
        let problem = run(Story { moves, ..story }, fresh, boot).err()?;
        Some((moves, problem))
    });
    let (moves, problem) = wrong.unwrap_or((story.moves, problem));
    format!("HELIX_SEED={} HELIX_MOVES={moves}\n{problem}", story.seed)
}

/// Returns the number of stories that the tier of the test run includes.
fn share(usual: u64) -> u64 {
    match std::env::var("HELIX_TIER").as_deref() {
        Ok("deep") => usual,
        Ok("gate") => usual.div_ceil(4),
        _ => usual.div_ceil(10),
    }
}

#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Runs that many stories, each on stores of its own, one at a time on each processor. `HELIX_SEED=N` runs
/// one of them again, with `HELIX_MOVES=N` only its first moves. `HELIX_SEEDS=N` runs the first N. Otherwise
/// `HELIX_TIER` determines the share: all with `deep`, a quarter with `gate` and a tenth without.
///
/// # Panics
/// If a story fails, with the shortest prefix of the story that fails.
#[expect(
    clippy::print_stdout,
    clippy::panic,
    clippy::expect_used,
    reason = "it reports the statistics or the problems"
)]
pub fn run_all(usual: u64, fresh: &Fresh, boot: &Boot) {
    if let Some(seed) = number("HELIX_SEED") {
        let story = Story::new(seed);
        let moves = number("HELIX_MOVES").and_then(|moves| usize::try_from(moves).ok());
        let story = Story { moves: moves.unwrap_or(story.moves), ..story };
        println!("{:?}", run(story, fresh, boot).map_err(|problem| panic!("{problem}")));
        return;
    }
    let seeds = number("HELIX_SEEDS").unwrap_or_else(|| share(usual));
    let started = Instant::now();
    let next = AtomicU64::new(0);
    let work = || {
        let (mut sum, mut problems) = (Stats::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds || problems.len() > 3 {
                return (sum, problems);
            }
            let story = Story::new(seed);
            match run(story, fresh, boot) {
                Ok(stats) => sum += stats,
                Err(problem) => problems.push(shortest(story, fresh, boot, problem)),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sum = Stats::default();
    let mut problems = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (stats, found) = worker.join().expect("a thread of stories");
            sum += stats;
            problems.extend(found);
        }
    });
    let each = started.elapsed().as_secs_f64() / seeds as f64;
    println!("{seeds} stories, {:.0} in a second: {sum:?}", 1.0 / each);
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    // The assertion makes sure that the stories contain crashes and children.
    assert!(sum.sessions as u64 > seeds * 2 && sum.deaths as u64 > seeds, "{sum:?}");
}
