//! `ci`: runs every gate.
//!
//! Gates that only read text run first and take seconds. The gates that compile follow. A failed gate does not hide the
//! later ones.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::test::tier::Tier;
use crate::{
    behaviour, cassettes, compat, cycles, deny, docs, e2e, fmt, frontends, layers, lint, report,
    suites, telemetry, test, tidy, words,
};

struct Gate {
    name: &'static str,
    run: fn(Tier) -> Result<()>,
}

#[rustfmt::skip]
const GATES: &[Gate] = &[
    Gate { name: "fmt",       run: |_| fmt::check() },
    Gate { name: "layers",    run: |_| report::gate("layers", layers::complaints) },
    Gate { name: "cycles",    run: |_| report::gate("cycles", cycles::complaints) },
    Gate { name: "tidy",      run: |_| report::gate("tidy", tidy::complaints) },
    Gate { name: "words",     run: |_| report::gate("words", words::complaints) },
    Gate { name: "deny",      run: |_| report::gate("deny", deny::complaints) },
    Gate { name: "compat",    run: |tier| report::gate("compat", || compat::complaints(tier)) },
    Gate { name: "lint",      run: |_| lint::run() },
    Gate { name: "suites",    run: |_| report::gate("suites", suites::complaints) },
    Gate { name: "test",      run: test::run_for_ci },
    Gate { name: "cassettes", run: |_| cassettes::run(&[]) },
    Gate { name: "behaviour", run: |_| behaviour::run(&[]) },
    Gate { name: "e2e",       run: |_| e2e::run(&["--check"]) },
    Gate { name: "frontends", run: frontends::run_for_ci },
    Gate { name: "telemetry", run: telemetry::run_for_ci },
    Gate { name: "docs",      run: |_| docs::run() },
];

struct Outcome {
    name: &'static str,
    took: Duration,
    result: Result<()>,
}

/// Runs all gates with the tests of a tier, and prints a summary.
pub(crate) fn run(tier: Tier) -> Result<()> {
    let outcomes: Vec<Outcome> = GATES.iter().map(|gate| pass(gate, tier)).collect();
    println!();
    for outcome in &outcomes {
        let seconds = outcome.took.as_secs_f64();
        match &outcome.result {
            Ok(()) => println!("{:9} ok      {seconds:7.1} s", outcome.name),
            Err(error) => println!("{:9} FAILED  {seconds:7.1} s  {error:#}", outcome.name),
        }
    }
    conclude(&outcomes)
}

fn pass(gate: &Gate, tier: Tier) -> Outcome {
    println!("\n== {} ==", gate.name);
    let start = Instant::now();
    let result = (gate.run)(tier);
    let took = start.elapsed();
    match &result {
        Ok(()) => println!("{}: ok in {:.1} s", gate.name, took.as_secs_f64()),
        Err(error) => println!("{}: FAILED in {:.1} s: {error:#}", gate.name, took.as_secs_f64()),
    }
    Outcome { name: gate.name, took, result }
}

fn conclude(outcomes: &[Outcome]) -> Result<()> {
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| outcome.result.is_err())
        .map(|outcome| outcome.name)
        .collect();
    let seconds: f64 = outcomes.iter().map(|outcome| outcome.took.as_secs_f64()).sum();
    let all = outcomes.len();
    if failed.is_empty() {
        println!("ci: all {all} gates passed in {seconds:.0} s");
        return Ok(());
    }
    bail!("ci: {} of {all} gates failed in {seconds:.0} s: {}", failed.len(), failed.join(", "));
}

#[cfg(test)]
mod tests;
