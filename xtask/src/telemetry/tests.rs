//! The options of the command, and its list of files.

use super::options::{self, FILES, Options, Store};

#[test]
fn without_options_all_tests_run_with_sqlite() {
    let options = Options::read(&[]).unwrap();
    assert_eq!(options, Options { stores: vec![Store::Sqlite], only: None });
    assert_eq!(options::files(None), FILES);
}

#[test]
fn options_select_stores_and_tests() {
    let options = Options::read(&["--store", "all", "--only", "test_kills"]).unwrap();
    assert_eq!(options.stores, Store::ALL);
    assert_eq!(options::files(options.only.as_deref()), ["test_kills"]);
    let options = Options::read(&["--only", "test_live.Live.test_demo"]).unwrap();
    assert_eq!(options::files(options.only.as_deref()), ["test_live.Live.test_demo"]);
}

#[test]
fn unknown_options_and_values_are_errors() {
    for (args, message) in [
        (&["--fast"][..], "unknown option `--fast`"),
        (&["--only"], "--only takes a value"),
        (&["--only", "test_pages"], "unknown tests `test_pages`"),
        (&["--store", "redis"], "unknown store `redis`"),
    ] {
        let error = Options::read(args).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn every_file_with_tests_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests-telemetry");
    let names = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    let mut found: Vec<_> = names
        .filter(|name| name.starts_with("test_"))
        .filter_map(|name| name.strip_suffix(".py").map(str::to_owned))
        .collect();
    let mut listed = FILES.to_vec();
    found.sort_unstable();
    listed.sort_unstable();
    assert_eq!(found, listed);
}
