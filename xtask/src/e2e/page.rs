//! The table of results in `docs/src/parity.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::Report;

/// The path of the page.
pub(super) const PAGE: &str = "docs/src/parity.md";

const BEGIN: &str = "<!-- begin: written by `cargo xtask e2e` -->";
const END: &str = "<!-- end -->";

/// The cell of a scenario that did not run on a runtime and store.
const NOTHING: &str = "–";

/// The mark behind a number that a run of all fault points wrote.
const IN_FULL: char = '*';

/// How many fault points a run covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    /// As many as a run has without `--full`.
    Usual,
    /// All of them.
    Full,
}

/// The cells by test and scenario, and then by runtime and store.
type Table = BTreeMap<(String, String), BTreeMap<String, String>>;

fn table(reports: &[Report], run: Run) -> Table {
    let mut counts: BTreeMap<_, BTreeMap<_, (usize, usize)>> = BTreeMap::new();
    for report in reports {
        let row = counts.entry((report.holds.clone(), report.scenario.clone())).or_default();
        let column = format!("{} on {}", title(&report.runtime), title(&report.store));
        let cell = row.entry(column).or_default();
        cell.0 += report.fault_points.len();
        cell.1 += report.fault_points.iter().filter(|point| !point.ok).count();
    }
    let text = |(points, failed): (usize, usize)| match failed {
        0 if run == Run::Full => format!("{points}{IN_FULL}"),
        0 => points.to_string(),
        failed => format!("FAILED in {failed} of {points}"),
    };
    let row =
        |row: BTreeMap<_, _>| row.into_iter().map(|(column, cell)| (column, text(cell))).collect();
    counts.into_iter().map(|(name, cells)| (name, row(cells))).collect()
}

/// Returns the name of a runtime or store in the guide.
fn title(name: &str) -> &str {
    match name {
        "durable" => "DBOS",
        "local" => "Local",
        "temporal" => "Temporal",
        "postgres" => "PostgreSQL",
        "redis" => "Redis",
        "sqlite" => "SQLite",
        other => other,
    }
}

/// Returns the reports as a table.
#[cfg(test)]
pub(super) fn render(reports: &[Report]) -> String {
    lines(&table(reports, Run::Usual))
}

/// Returns the reports as a table, with the columns of the page that they do not mention. The number of a full run stays
/// unless a usual run has a larger one. The rows that only full runs write stay until the next full run.
pub(super) fn render_beside(page: &str, reports: &[Report], run: Run) -> Result<String> {
    let mut table = table(reports, run);
    let ran: BTreeSet<String> = table.values().flat_map(|row| row.keys().cloned()).collect();
    for (name, cells) in written(page)? {
        for (column, before) in cells {
            let cell = table.get(&name).and_then(|row| row.get(&column));
            let stays = match cell {
                None => !ran.contains(&column) || (run == Run::Usual && is_in_full(&before)),
                Some(cell) => run == Run::Usual && covers_as_much(&before, cell),
            };
            if stays {
                table.entry(name.clone()).or_default().insert(column, before);
            }
        }
    }
    Ok(lines(&table))
}

/// Returns `true` if a cell holds the number of a full run.
fn is_in_full(cell: &str) -> bool {
    cell.ends_with(IN_FULL)
}

/// Returns `true` if a cell holds the number of a full run that is not smaller than the number of another cell.
fn covers_as_much(before: &str, cell: &str) -> bool {
    let in_full = before.strip_suffix(IN_FULL).and_then(|number| number.parse::<usize>().ok());
    // A cell without a number reports a failure, which is always written.
    in_full.zip(cell.parse().ok()).is_some_and(|(before, cell)| before >= cell)
}

/// Parses the table of a page.
fn written(page: &str) -> Result<Table> {
    let (_, generated, _) = around(page)?;
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        inner.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = generated.lines().map(cells);
    let columns = lines.next().unwrap_or_default();
    let mut table = Table::new();
    for line in lines.skip(1) {
        let [holds, scenario, ..] = &*line else { continue };
        let row = columns.iter().zip(&line).skip(2).filter(|(_, cell)| *cell != NOTHING);
        let row = row.map(|(column, cell)| (column.clone(), cell.clone())).collect();
        table.insert((holds.clone(), scenario.trim_matches('`').to_owned()), row);
    }
    Ok(table)
}

fn lines(table: &Table) -> String {
    let columns: BTreeSet<&str> =
        table.values().flat_map(|row| row.keys().map(String::as_str)).collect();
    let names: String = columns.iter().map(|column| format!(" {column} |")).collect();
    let rules = "---|".repeat(columns.len());
    let mut lines = vec![format!("| test | scenario |{names}"), format!("|---|---|{rules}")];
    for ((holds, scenario), row) in table {
        let cell = |column: &&str| row.get(*column).map_or(NOTHING, String::as_str);
        let cells: String = columns.iter().map(|column| format!(" {} |", cell(column))).collect();
        lines.push(format!("| {holds} | `{scenario}` |{cells}"));
    }
    lines.join("\n")
}

/// Returns the page before the generated part, that part, and the page after it.
fn around(page: &str) -> Result<(&str, &str, &str)> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| missing(BEGIN))?;
    let (generated, after) = rest.split_once(END).with_context(|| missing(END))?;
    Ok((before, generated.trim(), after))
}

fn missing(marker: &str) -> String {
    format!("`{marker}` is missing in {PAGE}")
}

/// Returns the page with this table.
pub(super) fn with_table(page: &str, table: &str) -> Result<String> {
    let (before, _, after) = around(page)?;
    Ok(format!("{before}{BEGIN}\n\n{table}\n\n{END}{after}"))
}

/// Returns a complaint for each row that the page and the reports do not share, and for each column that the page
/// lacks. The number of fault points is not compared, because it depends on timing and on the selected tests. Rows that
/// only full runs write are not compared either.
pub(super) fn complaints(page: &str, reports: &[Report]) -> Result<Vec<String>> {
    let (_, generated, _) = around(page)?;
    let only_in_full: BTreeSet<String> = written(page)?
        .into_iter()
        .filter(|(_, row)| !row.is_empty() && row.values().all(|cell| is_in_full(cell)))
        .map(|((holds, scenario), _)| format!("{holds} in `{scenario}`"))
        .collect();
    let rows = |text: &str| -> BTreeSet<String> {
        let cells = |line: &str| {
            let cells: Vec<_> = line.split('|').map(str::trim).skip(1).take(2).collect();
            cells.join(" in ")
        };
        text.lines().skip(2).map(cells).collect()
    };
    let fresh = lines(&table(reports, Run::Usual));
    let (is, should) = (rows(generated), rows(&fresh));
    let lacks = should.difference(&is).map(|row| format!("{PAGE} lacks the row `{row}`"));
    let stale = is.difference(&should).filter(|row| !only_in_full.contains(*row));
    let stale = stale.map(|row| format!("{PAGE} has the row `{row}`, of no test"));
    let mut complaints: Vec<_> = lacks.chain(stale).collect();
    let head = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let columns = head(&fresh);
    for column in columns.split('|').map(str::trim).filter(|column| !column.is_empty()) {
        if !head(generated).contains(&format!("| {column} |")) {
            complaints.push(format!("{PAGE} lacks the column `{column}`"));
        }
    }
    if generated.contains("FAILED") {
        complaints.push(format!("{PAGE} shows a property that did not hold"));
    }
    Ok(complaints)
}

/// Writes the reports into the page. The columns of runtimes and stores that did not run stay.
pub(super) fn write(reports: &[Report], run: Run) -> Result<()> {
    let page = read()?;
    let fresh = with_table(&page, &render_beside(&page, reports, run)?)?;
    if fresh != page {
        std::fs::write(PAGE, fresh).with_context(|| format!("could not write {PAGE}"))?;
    }
    Ok(())
}

/// Reads the page.
pub(super) fn read() -> Result<String> {
    if !Path::new(PAGE).exists() {
        bail!("{PAGE} is missing");
    }
    std::fs::read_to_string(PAGE).with_context(|| format!("could not read {PAGE}"))
}
