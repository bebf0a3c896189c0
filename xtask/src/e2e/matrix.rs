//! The kill matrix as text: a table per scenario, a row per fault point, a column per runtime and store.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::Report;

/// All tables, and one line that counts.
pub(super) fn render(reports: &[Report]) -> String {
    let mut scenarios: BTreeMap<&str, Vec<&Report>> = BTreeMap::new();
    for report in reports {
        scenarios.entry(&report.scenario).or_default().push(report);
    }
    let mut text = String::new();
    for (scenario, reports) in &scenarios {
        let _ = writeln!(text, "{scenario}\n{}", table(reports));
    }
    let kills = || reports.iter().flat_map(|it| &it.fault_points);
    let survived = kills().filter(|it| it.ok).count();
    let _ = write!(text, "{survived} of {} kills survived", kills().count());
    text
}

fn table(reports: &[&Report]) -> String {
    let columns: BTreeMap<String, &Report> = reports
        .iter()
        .map(|it| (format!("{}/{}", it.runtime, it.store), *it))
        .collect();
    let points: BTreeSet<&str> = reports
        .iter()
        .flat_map(|it| &it.fault_points)
        .map(|it| it.name.as_str())
        .collect();
    let first = points.iter().map(|it| it.len()).max().unwrap_or_default();

    let mut text = format!("  {:first$}", "");
    for column in columns.keys() {
        let _ = write!(text, "  {column}");
    }
    text.push('\n');
    for point in points {
        let _ = write!(text, "  {point:first$}");
        for (column, report) in &columns {
            let _ = write!(
                text,
                "  {:width$}",
                cell(report, point),
                width = column.len()
            );
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

/// A scenario may hit a point several times; one failure among them is what matters.
fn cell(report: &Report, point: &str) -> &'static str {
    let mut hits = report
        .fault_points
        .iter()
        .filter(|it| it.name == point)
        .peekable();
    if hits.peek().is_none() {
        "-"
    } else if hits.all(|it| it.ok) {
        "ok"
    } else {
        "FAILED"
    }
}
