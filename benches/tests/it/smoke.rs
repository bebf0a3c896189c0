//! A quick measurement of everything. Whether the answers were right, the program sees itself.

use std::process::Command;

use serde_json::Value;

/// Every figure, of every subject that has it, but for those that need a counter of instructions.
const FIGURES: [(&str, usize); 15] = [
    ("step.wall", 10),
    ("step.cpu", 10),
    ("durable.cpu", 4),
    ("growth.at-4", 3),
    ("growth.8", 3),
    ("stream.cpu", 3),
    ("memory.waiting", 3),
    ("cold.wall", 3),
    ("load.runs", 10),
    ("load.cpu", 10),
    ("durable.rows.4", 2),
    ("durable.bytes.4", 2),
    ("durable.wal.4", 2),
    ("stores.steps.2", 7),
    ("stores.run.2", 7),
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
        let found: Vec<&Value> = figures.iter().filter(|it| it["key"] == key).collect();
        assert_eq!(found.len(), subjects, "figures of {key}");
        assert!(found.iter().all(|it| it["value"].is_number()), "{key}: {found:?}");
    }
}

#[test]
fn a_group_can_be_measured_alone() {
    let mut driver = Command::new(env!("CARGO_BIN_EXE_helix-bench"));
    let output = driver.args(["--quick", "--only", "cold"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("cold.wall") && !text.contains("step.wall"), "{text}");
}
