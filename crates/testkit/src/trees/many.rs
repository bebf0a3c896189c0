//! Many stories, on clocks that never wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{Boot, Open, Story, Tally};

/// Makes the stores of one story: what opens them is called for each process.
pub type Fresh = dyn Fn() -> Box<Open> + Sync;

/// Tells a story on a thread of its own kind: one at a time, on a clock that never waits.
#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn tell(story: Story, fresh: &Fresh, boot: &Boot) -> Result<Tally, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a thread");
    runtime.block_on(story.tell(&*fresh(), boot))
}

/// The shortest beginning of the story that goes wrong too, and what goes wrong there.
fn shortest(story: Story, fresh: &Fresh, boot: &Boot, problem: String) -> String {
    let wrong = (1..story.moves).find_map(|moves| {
        let problem = tell(Story { moves, ..story }, fresh, boot).err()?;
        Some((moves, problem))
    });
    let (moves, problem) = wrong.unwrap_or((story.moves, problem));
    format!("HELIX_SEED={} HELIX_MOVES={moves}\n{problem}", story.seed)
}

#[expect(clippy::expect_used, reason = "a test fails by panicking")]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

/// Tells so many stories, each on stores of its own, one at a time on each processor: `HELIX_SEED=N` one
/// of them again, with `HELIX_MOVES=N` only its beginning, `HELIX_SEEDS=N` the first N.
///
/// # Panics
/// If something is wrong, with the shortest beginning of the story that goes wrong.
#[expect(
    clippy::print_stdout,
    clippy::panic,
    clippy::expect_used,
    reason = "it says how much happened, or what went wrong"
)]
pub fn tell_all(usual: u64, fresh: &Fresh, boot: &Boot) {
    if let Some(seed) = number("HELIX_SEED") {
        let story = Story::new(seed);
        let moves = number("HELIX_MOVES").and_then(|moves| usize::try_from(moves).ok());
        let story = Story { moves: moves.unwrap_or(story.moves), ..story };
        println!("{:?}", tell(story, fresh, boot).map_err(|problem| panic!("{problem}")));
        return;
    }
    let seeds = number("HELIX_SEEDS").unwrap_or(usual);
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let work = || {
        let (mut sum, mut problems) = (Tally::default(), Vec::new());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds || problems.len() > 3 {
                return (sum, problems);
            }
            let story = Story::new(seed);
            match tell(story, fresh, boot) {
                Ok(tally) => sum += tally,
                Err(problem) => problems.push(shortest(story, fresh, boot, problem)),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sum = Tally::default();
    let mut problems = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (tally, found) = worker.join().expect("a thread of stories");
            sum += tally;
            problems.extend(found);
        }
    });
    let each = begun.elapsed().as_secs_f64() / seeds as f64;
    println!("{seeds} stories, {:.0} in a second: {sum:?}", 1.0 / each);
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    // Stories in which nothing happens would prove nothing.
    assert!(sum.sessions as u64 > seeds * 2 && sum.deaths as u64 > seeds, "{sum:?}");
}
