//! Tests of the names of metrics.

use std::collections::BTreeSet;

use super::instruments::METRICS;

/// The guide's page on telemetry.
const PAGE: &str = include_str!("../../../../docs/src/telemetry.md");

#[test]
fn the_guide_lists_every_metric() {
    let (_, section) = PAGE.split_once("\n## Metrics\n").expect("a section on metrics");
    let section = section.split("\n## ").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    assert_eq!(names.collect::<BTreeSet<_>>(), METRICS.into_iter().collect());
}
