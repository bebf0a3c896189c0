//! What `cargo xtask e2e` is told: which of the end-to-end tests to run, and on what.

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "usage: cargo xtask e2e [--runtime NAME] [--store NAME|all] [--scenario WORD] \
                     [--seed N | --seeds N] [--full]\n       cargo xtask e2e --check";

/// The runtimes that stories can be told on.
const RUNTIMES: &[&str] = &["local"];

/// Which tests run, on what.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// The kind of store, or `all`; the tests know which there are. Unless told, SQLite, and of what
    /// there is to do on servers a part.
    pub(super) store: Option<String>,
    /// Only tests with this word in their names.
    pub(super) scenario: Option<String>,
    /// Only stories of random trees: the variable, and its value.
    pub(super) seeds: Option<(&'static str, String)>,
    /// Every scenario and every number of processes.
    pub(super) full: bool,
}

impl Options {
    pub(super) fn read(args: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.iter();
        while let Some(option) = args.next() {
            if *option == "--full" {
                options.full = true;
                continue;
            }
            let known =
                ["--runtime", "--store", "--scenario", "--seed", "--seeds"].contains(option);
            if !known {
                bail!("cannot read `{option}`; {USAGE}");
            }
            let value = args.next().with_context(|| format!("{option} takes a value; {USAGE}"))?;
            match *option {
                "--runtime" if !RUNTIMES.contains(value) => {
                    bail!("there is no runtime `{value}`; known are: {}", RUNTIMES.join(", "));
                }
                "--runtime" => {}
                "--store" => options.store = Some((*value).to_owned()),
                "--scenario" => options.scenario = Some((*value).to_owned()),
                option => {
                    value.parse::<u64>().with_context(|| format!("{option} takes a number"))?;
                    let name = if option == "--seed" { "HELIX_SEED" } else { "HELIX_SEEDS" };
                    options.seeds = Some((name, (*value).to_owned()));
                }
            }
        }
        Ok(options)
    }

    /// What of the tests' names has to be there.
    pub(super) fn filter(&self) -> Option<&str> {
        self.scenario.as_deref().or(self.seeds.as_ref().map(|_| "trees::"))
    }

    /// Whether all tests run, so that what they leave is all there is to say.
    pub(super) fn is_whole(&self) -> bool {
        self.filter().is_none()
    }

    /// Whether no store is left out that has something to say.
    pub(super) fn is_on_all_stores(&self) -> bool {
        self.store.as_ref().is_none_or(|store| store == "all")
    }
}
