//! A quick measurement of all groups. The program itself checks the results of the runs.

use std::process::Command;

use serde_json::Value;

/// The expected figures and their number of subjects, without those that need an instruction
/// counter.
const FIGURES: [(&str, usize); 48] = [
    ("step.wall", 10),
    ("step.cpu", 10),
    ("durable.cpu", 4),
    ("growth.at-4", 5),
    ("growth.8", 5),
    ("stream.cpu", 3),
    ("formats.chunk", 5),
    ("formats.chunk, 100 per write", 5),
    ("formats.step", 5),
    ("formats.at-4", 5),
    ("formats.8", 5),
    ("memory.waiting", 5),
    ("memory.suspended", 4),
    ("cold.wall", 3),
    ("load.runs", 10),
    ("load.cpu", 10),
    ("durable.appends.4", 6),
    ("durable.bytes.4", 6),
    ("durable.rows.4", 6),
    ("durable.stream-rows.4", 6),
    ("durable.wal.4", 6),
    ("durable.kept.4", 6),
    ("stores.steps.2", 7),
    ("stores.run.2", 7),
    ("append.p50", 7),
    ("append.p99", 7),
    ("append.one commit, p50", 6),
    ("append.the bare statement, p50", 2),
    ("append.1,000th over 10th, p50", 7),
    ("pgbench.appends.2", 2),
    ("pgbench.steps.100", 2),
    ("readers.one stream each: p50", 4),
    ("readers.one stream each: p99", 4),
    ("readers.one stream each: chunks", 4),
    ("readers.one stream each: memory", 4),
    ("readers.one stream for all: p50", 4),
    ("readers.one stream for all: chunks", 4),
    ("http.status", 4),
    ("http.first chunk", 4),
    ("http.fan-out", 4),
    ("http.first chunk without a server", 4),
    ("http.memory of an idle stream", 4),
    ("runtimes.steps.2", 5),
    ("runtimes.step.2", 5),
    ("runtimes.cpu.2", 5),
    ("runtimes.rows.4", 2),
    ("runtimes.bytes.4", 2),
    ("runtimes.wal.4", 3),
];

#[test]
fn a_quick_measurement_has_every_figure() {
    let mut driver = Command::new(env!("CARGO_BIN_EXE_helix-bench"));
    let output = driver.args(["--quick", "--json"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let figures = report["figures"].as_array().unwrap();
    for (key, subjects) in FIGURES {
        let found: Vec<&Value> = figures.iter().filter(|figure| figure["key"] == key).collect();
        assert_eq!(found.len(), subjects, "figures of {key}");
        assert!(found.iter().all(|figure| figure["value"].is_number()), "{key}: {found:?}");
    }
}

#[test]
fn a_group_can_be_measured_alone() {
    let mut driver = Command::new(env!("CARGO_BIN_EXE_helix-bench"));
    let output = driver.args(["cold", "--quick"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("cold.wall") && !text.contains("step.wall"), "{text}");
}
