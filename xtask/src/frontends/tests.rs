//! The options of the command, and its list of files.

use super::options::{Options, Runtime, Store, Suite};

#[test]
fn without_options_everything_runs_on_sqlite() {
    let options = Options::read(&[]).unwrap();
    let (suites, stores) = (Suite::ALL.to_vec(), vec![Store::Sqlite]);
    assert_eq!(options, Options { suites, stores, runtime: Runtime::Local });
}

#[test]
fn options_select_tests_and_stores() {
    let options = Options::read(&["--only", "chat", "--store", "all"]).unwrap();
    let (suites, stores) = (vec![Suite::Chat], Store::ALL.to_vec());
    assert_eq!(options, Options { suites, stores, runtime: Runtime::Local });
    let options = Options::read(&["--store", "redis", "--runtime", "temporal"]).unwrap();
    assert_eq!((options.stores, options.runtime), (vec![Store::Redis], Runtime::Temporal));
}

#[test]
fn unknown_options_and_values_are_errors() {
    for (args, message) in [
        (&["--fast"][..], "unknown option `--fast`"),
        (&["--only"], "--only takes a value"),
        (&["--only", "pages"], "unknown tests `pages`"),
        (&["--store", "mysql"], "unknown store `mysql`"),
        (&["--runtime", "cloud"], "unknown runtime `cloud`"),
    ] {
        let error = Options::read(args).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn every_file_with_tests_belongs_to_a_suite() {
    let mut listed: Vec<_> = Suite::ALL.iter().flat_map(|suite| suite.files()).copied().collect();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests-frontends/live");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let files = files.map(|name| name.into_string().unwrap());
    let mut found: Vec<_> = files.filter(|name| name.ends_with(".test.mjs")).collect();
    listed.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, listed);
}
