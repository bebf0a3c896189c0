//! The kill matrix as text: a table per scenario, a row per fault point, and a column per runtime and store.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{FaultPoint, Report};

/// Returns all tables, and a line with the number of survived fault points.
pub(super) fn render(reports: &[Report]) -> String {
    let mut scenarios: BTreeMap<String, Vec<&Report>> = BTreeMap::new();
    for report in reports {
        let Report { holds, scenario, mode, .. } = report;
        scenarios.entry(format!("{holds}: {scenario} {mode}")).or_default().push(report);
    }
    let mut text = String::new();
    for (scenario, reports) in &scenarios {
        let _ = writeln!(text, "{scenario}\n{}", table(reports));
    }
    let points = || reports.iter().flat_map(|report| &report.fault_points);
    let survived = points().filter(|point| point.ok).count();
    let _ = write!(text, "{survived} of {} fault points survived", points().count());
    text
}

fn table(reports: &[&Report]) -> String {
    let mut columns: BTreeMap<String, Vec<&FaultPoint>> = BTreeMap::new();
    for report in reports {
        let column = columns.entry(format!("{}/{}", report.runtime, report.store)).or_default();
        column.extend(&report.fault_points);
    }
    let points: BTreeSet<&str> =
        columns.values().flatten().map(|point| point.name.as_str()).collect();
    let first = points.iter().map(|point| point.len()).max().unwrap_or_default();

    let mut text = format!("  {:first$}", "");
    for column in columns.keys() {
        let _ = write!(text, "  {column}");
    }
    text.push('\n');
    for point in points {
        let _ = write!(text, "  {point:first$}");
        for (column, hits) in &columns {
            let _ = write!(text, "  {:width$}", cell(hits, point), width = column.len());
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// Returns the cell of a fault point. A point may be hit several times, and a single failure counts.
fn cell(hits: &[&FaultPoint], point: &str) -> &'static str {
    let mut hits = hits.iter().filter(|hit| hit.name == point).peekable();
    if hits.peek().is_none() {
        "-"
    } else if hits.all(|hit| hit.ok) {
        "ok"
    } else {
        "FAILED"
    }
}
