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
    // The names in Prometheus have no dots.
    let names = names.filter(|name| name.contains('.'));
    assert_eq!(names.collect::<BTreeSet<_>>(), METRICS.into_iter().collect());
}

/// The dashboard for Grafana.
const DASHBOARD: &str = include_str!("../../../../docs/grafana/helix-agents.json");

/// A receiver replaces the dots and adds the unit, and `total` for counters, `bucket`, `sum` and `count` for histograms.
#[test]
fn the_dashboard_uses_existing_metrics() {
    let metrics = METRICS.map(|name| name.replace('.', "_"));
    let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
    let suffixes = ["_total", "_bucket", "_sum", "_count"];
    let mut used = BTreeSet::new();
    for word in DASHBOARD.split(|c| !is_part(c)) {
        if let Some(name) = suffixes.iter().find_map(|suffix| word.strip_suffix(suffix)) {
            let name = name.strip_suffix("_seconds").unwrap_or(name);
            assert!(metrics.iter().any(|metric| metric == name), "unknown metric: {word}");
            used.insert(name);
        }
    }
    assert_eq!(used.len(), METRICS.len(), "the dashboard shows all metrics: {used:?}");
}
