//! The report as a text table.

use std::fmt::Write as _;

use super::counter::Counter;
use super::peers::Peers;
use super::report::{Figure, Report};

const HEAD: [&str; 7] = [
    "figure",
    "subject",
    "value",
    "spread",
    "× baseline",
    "aim",
    "best of the others (× its baseline)",
];

/// Renders the report with one line per figure.
pub(super) fn render(report: &Report) -> String {
    let peers = Peers::load().ok();
    let mut rows = vec![HEAD.map(str::to_owned)];
    let mut last_key = "";
    for figure in &report.figures {
        let first = figure.key != last_key;
        last_key = &figure.key;
        let best =
            peers.as_ref().and_then(|peers| peers.of(&figure.key)).and_then(|peer| peer.best());
        let best = best.filter(|_| first).unwrap_or_default();
        rows.push(row(figure, best));
    }
    let mut text = lay_out(&rows);
    let counted = match report.counter {
        Counter::Perf => "user-mode instructions, counted by the processor (perf)",
        Counter::Callgrind => "user-mode instructions, counted by valgrind",
        Counter::None => {
            "instructions were not counted, because neither perf nor valgrind works here"
        }
    };
    let missed: Vec<&Figure> = report
        .figures
        .iter()
        .filter(|figure| figure.aim.as_ref().is_some_and(|aim| !aim.met))
        .collect();
    let aims = report.figures.iter().filter(|figure| figure.aim.is_some()).count();
    let met = aims - missed.len();
    let _ = write!(text, "\n{counted}\naims met: {met} of {aims}\n");
    if let Some(peers) = peers {
        let _ = write!(text, "\nThe others: {}\n", peers.conditions.trim());
    }
    text
}

fn row(figure: &Figure, best: String) -> [String; 7] {
    let aim = figure.aim.as_ref().map(|aim| {
        let met = if aim.met { "met" } else { "MISSED" };
        format!("{} {met}", aim.text)
    });
    [
        figure.key.clone(),
        figure.subject.clone(),
        format!("{} {}", number(figure.value), figure.unit),
        figure.spread.map(|spread| format!("{:.0}%", spread * 100.0)).unwrap_or_default(),
        figure.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default(),
        aim.unwrap_or_default(),
        best,
    ]
}

/// Formats a number with three significant digits, or with all digits before the decimal point.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn lay_out(rows: &[[String; 7]]) -> String {
    let mut widths = [0; 7];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let line: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}
