//! `helix-sim [--hours H] [--stories N] [--seed N] [--without FAULT,…] [--threads N] [--simplify BOOL] [--known FILE]
//! [--commit ID] [--mutant NAME]` runs stories on all cores.
//!
//! `helix-sim --mutants [--mutant NAME]` removes guards of the product, one at a time, and prints the number of stories
//! until a story failed. `helix-sim --mutant-tests` prints the mutants that no story detects, with their tests.
//!
//! `helix-sim --story TEXT` runs one story again, simplifies it if it fails, and prints its trace.
//!
//! `cargo xtask sim` builds and calls this program.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use helix_agents_core::mutants::{ALL, MutantTest, select};
use helix_agents_tests_sim::{
    ALL_REACHED_AFTER, Failure, Fault, HEAD, Plan, Story, hunt_all, known_lines, run_many, simplest,
};

/// Allocations take a fifth of the time of a story.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The number of slow stories that are printed. On a busy machine, many stories are slow.
const MAX_SLOW: usize = 10;

struct Options {
    plan: Plan,
    story: Option<Story>,
    known: Option<String>,
    commit: String,
    /// Whether to run the mutants: all of them, or only `mutant`.
    mutants: bool,
    mutant: Option<String>,
    /// Whether to print the mutants that no story detects, each with the package and the name of its test.
    mutant_tests: bool,
}

fn main() -> ExitCode {
    match options(std::env::args().skip(1)) {
        Ok(options) => run(&options),
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let plan = Plan::default();
    let mut options = Options {
        plan,
        story: None,
        known: None,
        commit: "unknown".to_owned(),
        mutants: false,
        mutant: None,
        mutant_tests: false,
    };
    while let Some(name) = args.next() {
        if name == "--mutants" {
            options.mutants = true;
            continue;
        }
        if name == "--mutant-tests" {
            options.mutant_tests = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name} needs a value"))?;
        let wrong = || format!("cannot parse `{value}` of {name}");
        match &*name {
            "--hours" => {
                let hours: f64 = value.parse().map_err(|_| wrong())?;
                options.plan.time =
                    Duration::try_from_secs_f64(hours * 3_600.0).map_err(|_| wrong())?;
            }
            "--stories" => options.plan.stories = value.parse().map_err(|_| wrong())?,
            "--seed" => options.plan.first = value.parse().map_err(|_| wrong())?,
            "--mutant" => options.mutant = Some(value),
            "--threads" => options.plan.threads = Some(value.parse().map_err(|_| wrong())?),
            "--simplify" => options.plan.simplify = value.parse().map_err(|_| wrong())?,
            "--story" => options.story = Some(Story::parse(&value)?),
            "--without" => {
                let faults = value.split(',').map(Fault::parse);
                options.plan.without = faults.collect::<Result<_, _>>()?;
            }
            "--known" => options.known = Some(value),
            "--commit" => options.commit = value,
            _ => return Err(format!("unknown option {name}")),
        }
    }
    Ok(options)
}

fn run(options: &Options) -> ExitCode {
    if options.mutant_tests {
        for mutant in ALL {
            if let Some(MutantTest { package, name }) = mutant.test {
                println!("{} {package} {name}", mutant.name);
            }
        }
        return ExitCode::SUCCESS;
    }
    if options.mutants {
        return hunt(options);
    }
    if options.mutant.is_some() && !select(options.mutant.as_deref()) {
        eprintln!("error: unknown mutant");
        return ExitCode::from(2);
    }
    if let Some(story) = options.story {
        return run_one(story, options.plan.simplify);
    }
    let report = run_many(&options.plan);
    println!("{}", report.marks);
    println!(
        "{} stories in {:.2} h, {:.0} per second, {:.1} ms of CPU time each, {} failed: {:?}",
        report.stories,
        report.took.as_secs_f64() / 3_600.0,
        report.pace(),
        report.cpu.as_secs_f64() * 1_000.0 / report.stories.max(1) as f64,
        report.failed.iter().map(|failure| failure.times).sum::<u64>(),
        report.stats,
    );
    for story in report.slow.iter().take(MAX_SLOW) {
        println!("slow: --story \"{story}\"");
    }
    for Failure { story, problem, times } in &report.failed {
        println!("\nfailed {times} times: --story \"{story}\"\n{problem}");
    }
    if let Some(path) = &options.known
        && let Err(error) = note(path, &known_lines(&report.failed, &options.commit))
    {
        eprintln!("error: {path}: {error}");
        return ExitCode::FAILURE;
    }
    let missing: Vec<_> = report.marks.missing().collect();
    let unreached = report.stories >= ALL_REACHED_AFTER && !missing.is_empty();
    if unreached {
        println!("never reached: {missing:?}");
    }
    if unreached || !report.failed.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn run_one(story: Story, simplify: bool) -> ExitCode {
    let outcome = story.run();
    println!("{story:?}\n{}\n{:?}", outcome.marks, outcome.stats);
    if outcome.problems.is_empty() {
        return ExitCode::SUCCESS;
    }
    let failure = Failure::new(story, &outcome.problems);
    let Failure { story, problem, .. } = if simplify { simplest(failure) } else { failure };
    for line in story.run_with_trace().lines {
        println!("{line}");
    }
    println!("--story \"{story}\"\n{problem}");
    ExitCode::FAILURE
}

/// Prints the table of the guide.
fn hunt(options: &Options) -> ExitCode {
    println!("{HEAD}");
    let hunted = hunt_all(&options.plan, options.mutant.as_deref(), |hunted| println!("{hunted}"));
    let missed = hunted.iter().filter(|hunted| !hunted.is_noticed_or_tested()).count();
    let tested = hunted.iter().filter(|hunted| hunted.mutant.test.is_some()).count();
    println!("\n{} mutants, {missed} not noticed, {tested} left to tests", hunted.len());
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn note(path: &str, lines: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(lines.as_bytes())
}
