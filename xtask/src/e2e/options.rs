//! What `cargo xtask e2e` is told: which of the end-to-end tests to run, and on what.

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "usage: cargo xtask e2e [--runtime NAME|all] [--store NAME|all] [--scenario WORD] \
                     [--seed N | --seeds N] [--full]\n       cargo xtask e2e --check";

/// The runtimes that stories can be told on.
const RUNTIMES: &[&str] = &["local", "durable", "temporal", "all"];

/// What becomes of the table in the guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    /// All of it ran, or all of one runtime.
    Written,
    /// A sample of all of it ran, as in CI.
    Compared,
    /// Something else ran.
    LeftAlone,
}

/// Which tests run, on what.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// The kind of store, or `all`; the tests know which there are. Unless told, SQLite, and of what
    /// there is to do on servers a sample.
    pub(super) store: Option<String>,
    /// The runtime that tests are about; unless told, all of them.
    pub(super) runtime: Option<String>,
    /// Only tests with this word in their names.
    pub(super) scenario: Option<String>,
    /// Only random trees and stalls at random moments: the variable, and its value.
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
                "--runtime" if *value == "all" => {}
                "--runtime" => options.runtime = Some((*value).to_owned()),
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

    /// Which tests run, in the words of the test runner; none for all of them.
    pub(super) fn filter(&self) -> Option<String> {
        let seeded = || self.seeds.as_ref().map(|_| "test(/trees::|random_moments/)".to_owned());
        let word = self.scenario.as_deref().map(|word| format!("test({word})")).or_else(seeded);
        let runtime = self.runtime.as_deref().map(|runtime| match runtime {
            // Those of an engine are in a module of its name.
            "local" => "not test(/::(durable|temporal)::/)".to_owned(),
            engine => format!("test(/::{engine}::/)"),
        });
        let both: Vec<_> = runtime.into_iter().chain(word).collect();
        (!both.is_empty()).then(|| both.join(" & "))
    }

    /// What the test runner is told to run the parity suite; none for stories of one seed, which it has not.
    pub(super) fn parity(&self) -> Option<Vec<String>> {
        if self.seeds.is_some() {
            return None;
        }
        let engines = RUNTIMES.iter().filter(|runtime| **runtime != "all");
        let runtimes =
            engines.filter(|name| self.runtime.as_ref().is_none_or(|runtime| runtime == **name));
        let mut args: Vec<_> =
            runtimes.map(|runtime| format!("--package=helix-agents-runtime-{runtime}")).collect();
        let store = self.store.as_deref().filter(|store| *store != "all");
        let module = store.map_or("parity::".to_owned(), |store| format!("parity::{store}::"));
        let word = self.scenario.as_deref().map(|word| format!(" & test({word})"));
        let filter = format!("test(/^{module}/){}", word.unwrap_or_default());
        args.extend(["--no-tests=pass".to_owned(), "-E".to_owned(), filter]);
        Some(args)
    }

    /// What of the guide there is to do after these tests.
    pub(super) fn page(&self) -> Page {
        let is_part = self.scenario.is_some() || self.seeds.is_some();
        match self.store.as_deref() {
            // More scenarios than the page tells of, or fewer.
            _ if self.full || is_part => Page::LeftAlone,
            Some("all") => Page::Written,
            Some(_) => Page::LeftAlone,
            None if self.runtime.is_some() => Page::LeftAlone,
            None => Page::Compared,
        }
    }
}
