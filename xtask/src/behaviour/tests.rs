//! A page, a list and a run that agree, and then each with one error.

use std::fmt::Write as _;

use super::entries::Entries;
use super::lock::Lock;
use super::ran::Ran;
use super::seeds::Seeds;
use super::{Options, complaints, options};

const PAGE: &str = "Sessions have a\n  log. Runs end.\nRuns start. It is built on clouds.\n";

const LIST: &str = r#"
[session-log]
seed = "page"
quote = "Sessions have a log."
scenarios = ["store_suite::logs", "runtime_suite::runs", "ours-core::log::tests::grows"]

[run-start]
seed = "page"
quote = "Runs start"
differs = "Ours is started."

[run-clouds]
seed = "page"
quote = "built on clouds"
later = "cloudflare"
"#;

const RAN: &[(&str, &str, bool)] = &[
    ("helix-agents-store-a::it", "conformance::logs", true),
    ("helix-agents-store-b::it", "conformance::logs", true),
    ("helix-agents-runtime-a::it", "parity::memory::runs", true),
    ("ours-core", "log::tests::grows", true),
];

fn entries(list: &str) -> Entries {
    Entries::read(list).unwrap()
}

fn seeds(page: &str) -> Seeds {
    Seeds::of([("page".to_owned(), page.to_owned())])
}

/// Returns a report in nextest's format.
fn ran(cases: &[(&str, &str, bool)]) -> Ran {
    let mut xml = "<testsuites>".to_owned();
    for (binary, name, passed) in cases {
        let inside = if *passed { "<system-out>ok</system-out>" } else { "<failure/>" };
        let _ = write!(
            xml,
            "<testsuite name=\"{binary}\"><testcase name=\"{name}\" classname=\"{binary}\" \
             time=\"0.1\">{inside}</testcase></testsuite>"
        );
    }
    Ran::read(&format!("{xml}</testsuites>")).unwrap()
}

/// Returns the complaints about a list if the seeds are available.
fn check(list: &str) -> Vec<String> {
    let (entries, seeds) = (entries(list), seeds(PAGE));
    let lock = Lock::of(&entries, &seeds);
    complaints(&entries, Some(&seeds), &lock, &ran(RAN))
}

/// Returns the complaints about a list and a run without the seeds. The lock is that of [`LIST`].
fn check_without_seeds(list: &str, cases: &[(&str, &str, bool)]) -> Vec<String> {
    let lock = Lock::of(&entries(LIST), &seeds(PAGE));
    let lock = Lock::read(&lock.text().unwrap()).unwrap();
    complaints(&entries(list), None, &lock, &ran(cases))
}

const FINE: [&str; 0] = [];

#[test]
fn a_correct_list_has_no_complaints_with_and_without_seeds() {
    assert_eq!(check(LIST), FINE);
    assert_eq!(check_without_seeds(LIST, RAN), FINE);
    let wrapped = LIST.replace("have a log", "have\\n a log");
    assert_eq!(check_without_seeds(&wrapped, RAN), FINE, "white space makes no difference");
}

#[test]
fn a_quote_occurs_in_its_seed_exactly_once() {
    assert_eq!(
        check(&LIST.replace("have a log", "have two logs")),
        ["session-log: the quote does not occur in page"]
    );
    assert_eq!(
        check(&LIST.replace("Runs start", "Runs")),
        ["run-start: the quote occurs 2 times in page"]
    );
    let twice = LIST.replace("built on clouds", "Runs start");
    assert_eq!(check(&twice), ["run-start: another entry has the same quote"]);
}

#[test]
fn a_changed_quote_is_noticed_without_seeds() {
    let complaints = check_without_seeds(&LIST.replace("Runs start", "Runs stop"), RAN);
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(complaints[0].starts_with("run-start: new or changed"), "{complaints:?}");
    let renamed = check_without_seeds(&LIST.replace("[run-clouds]", "[run-sky]"), RAN);
    assert!(renamed[0].starts_with("run-sky: new or changed"), "{renamed:?}");
    assert_eq!(renamed[1], "run-clouds: only in the lock; add --write");
}

#[test]
fn an_unknown_seed_is_named_with_and_without_seeds() {
    let list = LIST.replacen("\"page\"", "\"leaf\"", 1);
    let complaint = "session-log: no seed is called leaf; known seeds: page";
    assert_eq!(check(&list), [complaint]);
    assert_eq!(check_without_seeds(&list, RAN), [complaint]);
}

#[test]
fn a_lock_of_other_seeds_is_out_of_date() {
    let entries = entries(LIST);
    let lock = Lock::of(&entries, &seeds(PAGE));
    let changed = seeds(&PAGE.replace("Runs end", "Runs stop"));
    let complaints = complaints(&entries, Some(&changed), &lock, &ran(RAN));
    assert_eq!(complaints, ["docs/behaviour.lock: out of date; add --write"]);
}

#[test]
fn a_scenario_must_have_run() {
    assert_eq!(
        check_without_seeds(&LIST.replace("tests::grows", "tests::shrinks"), RAN),
        ["session-log: the last run of all tests has no test called \
             ours-core::log::tests::shrinks"]
    );
    assert_eq!(
        check_without_seeds(LIST, &RAN[..2]).len(),
        2,
        "the scenario of the runtimes and the unit test are missing"
    );
    let other_suite = LIST.replace("store_suite::logs", "stream_suite::logs");
    assert_eq!(check(&other_suite).len(), 1);
    let part_of_a_name = LIST.replace("runtime_suite::runs", "runtime_suite::uns");
    assert_eq!(check(&part_of_a_name).len(), 1);
}

#[test]
fn a_scenario_must_have_passed_on_every_backend() {
    let mut cases = RAN.to_vec();
    cases[1].2 = false;
    assert_eq!(
        check_without_seeds(LIST, &cases),
        ["session-log: helix-agents-store-b::it::conformance::logs failed"]
    );
}

#[test]
fn an_id_identifies_one_behaviour() {
    let error = Entries::read(&LIST.replace("run-clouds", "run-start")).unwrap_err().to_string();
    assert!(error.contains("duplicate key"), "{error}");
    let complaints = check(&LIST.replace("session-log", "Session"));
    assert_eq!(complaints, ["Session: an id must be lower-case words joined by dashes"]);
}

#[test]
fn an_open_entry_fails() {
    let list = LIST.replace("differs = \"Ours is started.\"", "scenarios = []\ntodo = \"Starts.\"");
    assert_eq!(check(&list), ["run-start: to be tested: Starts."]);
    let counted = entries(&list).count();
    assert_eq!(counted, "3 behaviours: 1 later, 1 proven, 1 to do\nto do: 1 run");
}

#[test]
fn an_entry_states_exactly_one_outcome() {
    let complain = |old: &str, new: &str| check(&LIST.replace(old, new));
    assert_eq!(
        complain("differs = \"Ours is started.\"", ""),
        ["run-start: give `scenarios`, `differs`, `later` or `todo`"]
    );
    assert_eq!(
        complain("Ours is started.", " "),
        ["run-start: `differs`, `later` and `todo` must not be empty"]
    );
    assert_eq!(
        complain("later = ", "differs = \"No.\"\nlater = "),
        ["run-clouds: `later` excludes the other keys"]
    );
    let unknown = complain("cloudflare", "someday");
    assert!(unknown[0].starts_with("run-clouds: `someday` is not built later"), "{unknown:?}");
    assert!(Entries::read(&LIST.replace("differs", "difers")).is_err());
}

#[test]
fn an_invalid_report_is_refused() {
    assert!(Ran::read("not found").is_err());
}

#[test]
fn options_are_read_in_any_order() {
    let all = options(&["--seeds", "pages", "--write"]).unwrap();
    assert_eq!(all, Options { write: true, seeds: Some("pages".into()) });
    assert_eq!(options(&[]).unwrap(), Options::default());
    for wrong in [&["--seeds"][..], &["--loud"], &["all"]] {
        assert!(options(wrong).unwrap_err().to_string().contains("usage"), "{wrong:?}");
    }
}
