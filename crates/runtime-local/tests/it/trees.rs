//! Random trees of agents, whose processes die at random.
//!
//! `HELIX_SEED=N` tells one story again, with `HELIX_MOVES=N` only its beginning; `HELIX_SEEDS=N`
//! tells the first N.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use helix_agents_core::agent::AgentRegistry;
use helix_agents_core::executor::AgentExecutor as _;
use helix_agents_runtime_local::LocalRuntime;
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::chaos::ChaosStore;
use helix_agents_testkit::trees::{Boot, Booted, Process, Stores, Story, Tally};

/// How many stories are told in CI.
const SEEDS: u64 = 2_000;

/// How many of them on a bad network.
const DISTURBED: u64 = 200;

fn boot(process: Process) -> Booted {
    let runtime = LocalRuntime::builder()
        .state_store(process.store)
        .stream_manager(process.streams)
        .llm_adapter(process.llm)
        .registry(AgentRegistry::clone(&process.registry))
        .durability(process.durability)
        .lease(Duration::from_secs(30))
        .grace(Duration::from_millis(100));
    let runtime = match process.ids {
        Some(ids) => runtime.ids(ids),
        None => runtime,
    };
    let runtime = runtime.build().unwrap();
    let sweeper = runtime.clone();
    let sweep = move || {
        let runtime = sweeper.clone();
        async move { runtime.sweep().await.map(drop) }.boxed()
    };
    Booted { executor: Arc::new(runtime), sweep: Arc::new(sweep) }
}

/// Tells a story on a thread of its own kind: one at a time, on a clock that never waits.
fn tell(story: Story, boot: &Boot) -> Result<Tally, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let open = move || {
        let (state, streams) = (Arc::new(store.clone()), Arc::new(store.clone()));
        async move { Stores { state, streams } }.boxed()
    };
    runtime.block_on(story.tell(&open, boot))
}

/// The shortest beginning of the story that goes wrong too, and what goes wrong there.
fn shortest(story: Story, boot: &Boot, problem: String) -> String {
    let wrong = (1..story.moves).find_map(|moves| {
        let problem = tell(Story { moves, ..story }, boot).err()?;
        Some((moves, problem))
    });
    let (moves, problem) = wrong.unwrap_or((story.moves, problem));
    format!("HELIX_SEED={} HELIX_MOVES={moves}\n{problem}", story.seed)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

#[test]
fn whatever_happens_a_tree_ends_and_its_logs_agree() {
    tell_all(SEEDS, &boot);
}

/// Every third operation is late, lost, unanswered or done twice.
#[test]
fn on_a_bad_network_a_tree_ends_and_its_logs_agree() {
    tell_all(DISTURBED, &|process: Process| {
        let store = Arc::new(ChaosStore::new(Arc::clone(&process.store), 1));
        boot(Process { store, ..process })
    });
}

#[expect(
    clippy::print_stdout,
    clippy::panic,
    reason = "it says how much happened, or what went wrong"
)]
fn tell_all(usual: u64, boot: &Boot) {
    if let Some(seed) = number("HELIX_SEED") {
        let story = Story::new(seed);
        let moves = number("HELIX_MOVES").and_then(|moves| usize::try_from(moves).ok());
        let story = Story { moves: moves.unwrap_or(story.moves), ..story };
        println!("{:?}", tell(story, boot).map_err(|problem| panic!("{problem}")));
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
            match tell(story, boot) {
                Ok(tally) => sum += tally,
                Err(problem) => problems.push(shortest(story, boot, problem)),
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut sum = Tally::default();
    let mut problems = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (tally, found) = worker.join().unwrap();
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
