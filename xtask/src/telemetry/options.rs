//! The options of `cargo xtask telemetry`: which tests to run, and with which stores.

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "usage: cargo xtask telemetry [--store sqlite|postgres|all] [--only test_live|test_kills|test_receiver]";

/// The variable with the URL of the PostgreSQL server that stores the sessions.
pub(super) const DATABASE: &str = "HELIX_TELEMETRY_POSTGRES";

/// The files with tests, in the order in which they run.
pub(super) const FILES: [&str; 3] = ["test_live", "test_kills", "test_receiver"];

/// The store of the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Store {
    Sqlite,
    Postgres,
}

impl Store {
    pub(super) const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// Returns the selected files.
pub(super) fn files(only: Option<&str>) -> Vec<&str> {
    only.map_or_else(|| FILES.to_vec(), |only| vec![only])
}

/// The selected tests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) stores: Vec<Store>,
    /// A file with tests, or a test in it.
    pub(super) only: Option<String>,
}

impl Options {
    pub(super) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self { stores: vec![Store::Sqlite], only: None };
        let mut args = args.iter();
        while let Some(option) = args.next() {
            let mut value =
                || args.next().with_context(|| format!("{option} takes a value; {USAGE}"));
            match *option {
                "--store" => {
                    let name = *value()?;
                    let stores = Store::ALL.into_iter();
                    options.stores =
                        stores.filter(|store| name == "all" || store.name() == name).collect();
                    if options.stores.is_empty() {
                        bail!("unknown store `{name}`; {USAGE}");
                    }
                }
                "--only" => {
                    let name = *value()?;
                    let file = name.split('.').next().unwrap_or_default();
                    if !FILES.contains(&file) {
                        bail!("unknown tests `{name}`; {USAGE}");
                    }
                    options.only = Some(name.to_owned());
                }
                _ => bail!("unknown option `{option}`; {USAGE}"),
            }
        }
        Ok(options)
    }
}
