//! The matrix of a few reports, and their table in the guide.

use super::options::{Options, Page};
use super::page::Run;
use super::{Report, matrix, page};

fn report(json: &str) -> Report {
    serde_json::from_str(json).unwrap()
}

#[test]
fn a_point_is_a_row_and_a_runtime_on_a_store_a_column() {
    let reports = [
        report(
            r#"{"runtime":"local","store":"sqlite","holds":"kill matrix","scenario":"research","mode":"per_effect","fault_points":[
                {"name":"after_append","ok":true},{"name":"before_append","ok":true}]}"#,
        ),
        report(
            r#"{"runtime":"local","store":"memory","holds":"kill matrix","scenario":"research","mode":"per_effect","fault_points":[
                {"name":"after_append","ok":false}]}"#,
        ),
        report(
            r#"{"runtime":"local","store":"memory","holds":"kill matrix","scenario":"research","mode":"per_effect","fault_points":[
                {"name":"after_append","ok":true}]}"#,
        ),
    ];
    let expected = "\
kill matrix: research per_effect
                 local/memory  local/sqlite
  after_append   FAILED        ok
  before_append  -             ok

3 of 4 fault points survived";
    assert_eq!(matrix::render(&reports), expected);
}

fn reports() -> [Report; 2] {
    let of = |holds: &str, ok: bool| {
        report(&format!(
            r#"{{"runtime":"local","store":"sqlite","holds":"{holds}","scenario":"plain",
                "mode":"per_step","fault_points":[{{"name":"a","ok":{ok}}},{{"name":"b","ok":true}}]}}"#
        ))
    };
    [of("consume-once", true), of("kill matrix", true)]
}

const PAGE: &str =
    "Before.\n<!-- begin: written by `cargo xtask e2e` -->\n\n<!-- end -->\nAfter.\n";

#[test]
fn the_table_is_between_its_markers() {
    let page = page::with_table(PAGE, &page::render(&reports())).unwrap();
    let expected = "\
Before.
<!-- begin: written by `cargo xtask e2e` -->

| test | scenario | Local on SQLite |
|---|---|---|
| consume-once | `plain` | 2 |
| kill matrix | `plain` | 2 |

<!-- end -->
After.
";
    assert_eq!(page, expected);
    assert_eq!(page::complaints(&page, &reports()).unwrap(), [""; 0]);
    assert_eq!(page::with_table(&page, &page::render(&reports())).unwrap(), page);
}

#[test]
fn rows_and_columns_are_compared_and_numbers_are_not() {
    let page = page::with_table(PAGE, &page::render(&reports())).unwrap();
    let other_number = page.replace("| 2 |", "| 3 |");
    assert_eq!(page::complaints(&other_number, &reports()).unwrap(), [""; 0]);
    let complaints = |page: &str| page::complaints(page, &reports()).unwrap().join("\n");
    assert!(complaints(&page.replace("consume-once", "consume")).contains("lacks the row"));
    assert!(complaints(&page.replace("consume-once", "consume")).contains("of no test"));
    assert!(complaints(&page.replace("Local on", "far on")).contains("lacks the column"));
    assert!(complaints(&page.replace("| 2 |", "| FAILED in 1 of 2 |")).contains("did not hold"));
    assert!(page::complaints("nothing", &reports()).is_err());
}

#[test]
fn a_scenario_that_did_not_run_has_an_empty_cell() {
    let [one, mut other] = reports();
    other.store = "redis".to_owned();
    other.fault_points.truncate(1);
    let expected = "\
| test | scenario | Local on Redis | Local on SQLite |
|---|---|---|---|
| consume-once | `plain` | – | 2 |
| kill matrix | `plain` | 1 | – |";
    assert_eq!(page::render(&[one, other]), expected);
}

#[test]
fn the_columns_of_other_runtimes_stay() {
    let page = page::with_table(PAGE, &page::render(&reports())).unwrap();
    let [mut one, mut other] = reports();
    one.runtime = "temporal".to_owned();
    other.runtime = "temporal".to_owned();
    other.holds = "same as local".to_owned();
    let both = page::render_beside(&page, &[one, other], Run::Usual).unwrap();
    let expected = "\
| test | scenario | Local on SQLite | Temporal on SQLite |
|---|---|---|---|
| consume-once | `plain` | 2 | 2 |
| kill matrix | `plain` | 2 | – |
| same as local | `plain` | – | 2 |";
    assert_eq!(both, expected);
    let page = page::with_table(&page, &both).unwrap();
    let [mut alone, _] = reports();
    alone.runtime = "temporal".to_owned();
    alone.fault_points.truncate(1);
    let expected = "\
| test | scenario | Local on SQLite | Temporal on SQLite |
|---|---|---|---|
| consume-once | `plain` | 2 | 1 |
| kill matrix | `plain` | 2 | – |";
    assert_eq!(page::render_beside(&page, &[alone], Run::Usual).unwrap(), expected);
}

/// A page whose only table has this cell for `consume-once` in `plain`, and another row.
fn page_with(cell: &str) -> String {
    let table = page::render(&reports()).replacen("| 2 |", &format!("| {cell} |"), 1);
    page::with_table(PAGE, &table).unwrap()
}

#[test]
fn a_usual_run_replaces_only_a_smaller_number_of_a_full_run() {
    for (before, run, ok, expected) in [
        ("44*", Run::Usual, true, "44*"),
        ("2*", Run::Usual, true, "2*"),
        ("1*", Run::Usual, true, "2"),
        ("44", Run::Usual, true, "2"),
        ("44*", Run::Usual, false, "FAILED in 1 of 2"),
        ("44*", Run::Full, true, "2*"),
        ("1", Run::Full, true, "2*"),
        ("44*", Run::Full, false, "FAILED in 1 of 2"),
        ("FAILED in 1 of 44", Run::Usual, true, "2"),
    ] {
        let [mut one, other] = reports();
        one.fault_points[0].ok = ok;
        let fresh = page::render_beside(&page_with(before), &[one, other], run).unwrap();
        let row = format!("| consume-once | `plain` | {expected} |");
        assert!(fresh.lines().any(|line| line == row), "{before} {run:?}: {fresh}");
    }
}

#[test]
fn a_row_that_only_full_runs_have_stays_until_the_next_of_them() {
    let other = || {
        let [_, other] = reports();
        [other]
    };
    for (cell, run, stays) in
        [("44*", Run::Usual, true), ("44", Run::Usual, false), ("44*", Run::Full, false)]
    {
        let page = page_with(cell);
        let fresh = page::render_beside(&page, &other(), run).unwrap();
        assert_eq!(fresh.contains("consume-once"), stays, "{cell} {run:?}: {fresh}");
        let complaints = page::complaints(&page, &other()).unwrap();
        assert_eq!(complaints.is_empty(), cell.ends_with('*'), "{complaints:?}");
    }
}

#[test]
fn a_full_run_on_one_store_leaves_the_columns_of_other_stores() {
    let page = page::with_table(PAGE, &page::render(&reports())).unwrap();
    let [_, mut other] = reports();
    other.store = "redis".to_owned();
    let expected = "\
| test | scenario | Local on Redis | Local on SQLite |
|---|---|---|---|
| consume-once | `plain` | – | 2 |
| kill matrix | `plain` | 2* | 2 |";
    assert_eq!(page::render_beside(&page, &[other], Run::Full).unwrap(), expected);
}

#[test]
fn the_mark_of_a_full_run_is_no_difference() {
    assert_eq!(page::complaints(&page_with("44*"), &reports()).unwrap(), [""; 0]);
}

#[test]
fn only_complete_runs_on_all_stores_are_written() {
    for (args, expected) in [
        (&["--store", "all"][..], Page::Written),
        (&["--store", "all", "--runtime", "all"], Page::Written),
        (&["--store", "all", "--runtime", "local"], Page::Written),
        (&["--runtime", "local"], Page::LeftAlone),
        (&[], Page::Compared),
        (&["--store", "redis"], Page::LeftAlone),
        (&["--store", "all", "--full"], Page::WrittenInFull),
        (&["--store", "redis", "--full"], Page::WrittenInFull),
        (&["--runtime", "local", "--full"], Page::WrittenInFull),
        (&["--full", "--scenario", "people"], Page::LeftAlone),
        (&["--full", "--seeds", "7"], Page::LeftAlone),
        (&["--store", "all", "--scenario", "people"], Page::LeftAlone),
        (&["--full"], Page::WrittenInFull),
        (&["--seeds", "7"], Page::LeftAlone),
    ] {
        assert_eq!(Options::read(args).unwrap().page(), expected, "{args:?}");
    }
}

#[test]
fn unknown_options_are_refused() {
    let read = |args: &[&str]| Options::read(args);
    let all = ["--store", "sqlite", "--scenario", "people", "--seeds", "7", "--full"];
    let options = read(&all).unwrap();
    assert_eq!(options.seeds, Some(("HELIX_SEEDS", "7".to_owned())));
    assert_eq!((&*options.filter(), options.full), ("not test(/^parity::/) & test(people)", true));
    let expected = "not test(/^parity::/) & test(/trees::|random_moments/)";
    assert_eq!(read(&["--seed", "3"]).unwrap().filter(), expected);
    let engine = read(&["--runtime", "durable", "--scenario", "people"]).unwrap();
    let expected = "not test(/^parity::/) & test(/::durable::/) & test(people)";
    assert_eq!(engine.filter(), expected);
    for wrong in [&["--runtime", "moon"][..], &["--seed", "x"], &["--store"], &["fast"]] {
        assert!(read(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn the_parity_suite_runs_on_the_chosen_runtimes_and_stores() {
    let parity = |args: &[&str]| Options::read(args).unwrap().parity().map(|args| args.join(" "));
    let package = |name| format!("--package=helix-agents-runtime-{name}");
    let (local, durable, temporal) = (package("local"), package("durable"), package("temporal"));
    let servers = "--package=helix-agents-tests-e2e";
    let all =
        format!("{local} {durable} {temporal} {servers} --no-tests=pass -E test(/^parity::/)");
    assert_eq!(parity(&[]), Some(all));
    let some = format!("{durable} --no-tests=pass -E test(/^parity::redis::/) & test(people)");
    let args = ["--runtime", "durable", "--store", "redis", "--scenario", "people"];
    assert_eq!(parity(&args), Some(some));
    assert_eq!(parity(&["--seed", "3"]), None);
}
