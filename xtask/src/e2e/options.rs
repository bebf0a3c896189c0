//! The options of `cargo xtask e2e`: which end-to-end tests to run, on which runtimes and stores.

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "usage: cargo xtask e2e [--runtime NAME|all] [--store NAME|all] [--scenario WORD] \
                     [--seed N | --seeds N] [--full]\n       cargo xtask e2e --check";

/// The runtimes of the end-to-end tests.
const RUNTIMES: &[&str] = &["local", "durable", "temporal", "all"];

/// What to do with the table in the guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    /// Write it, because all tests ran, or all of one runtime.
    Written,
    /// Write it, because all fault points of all tests ran, or of one runtime or store.
    WrittenInFull,
    /// Compare it, because a sample of all tests ran, as in CI.
    Compared,
    /// Leave it, because other tests ran.
    LeftAlone,
}

/// The selected tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    /// The kind of store, or `all`. The tests know the kinds. The default is SQLite and a sample of the tests on
    /// servers.
    pub(super) store: Option<String>,
    /// The runtime of the tests. The default is all of them.
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
                bail!("unknown option `{option}`; {USAGE}");
            }
            let value = args.next().with_context(|| format!("{option} takes a value; {USAGE}"))?;
            match *option {
                "--runtime" if !RUNTIMES.contains(value) => {
                    bail!("unknown runtime `{value}`; known runtimes: {}", RUNTIMES.join(", "));
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

    /// Returns the nextest filter of the selected tests, without the parity suite.
    pub(super) fn filter(&self) -> String {
        let seeded = || self.seeds.as_ref().map(|_| "test(/trees::|random_moments/)".to_owned());
        let word = self.scenario.as_deref().map(|word| format!("test({word})")).or_else(seeded);
        let runtime = self.runtime.as_deref().map(|runtime| match runtime {
            // The tests of an engine are in a module with its name.
            "local" => "not test(/::(durable|temporal)::/)".to_owned(),
            engine => format!("test(/::{engine}::/)"),
        });
        let suite = "not test(/^parity::/)".to_owned();
        let all: Vec<_> = std::iter::once(suite).chain(runtime).chain(word).collect();
        all.join(" & ")
    }

    /// Returns the nextest arguments that run the parity suite. `None` for tests of one seed, because the suite has no
    /// seeds.
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
        if self.runtime.as_deref().is_none_or(|runtime| runtime == "local") {
            // The local runtime on the stores with a server.
            args.push(format!("--package={}", super::PACKAGE));
        }
        args.extend(["--no-tests=pass".to_owned(), "-E".to_owned(), filter]);
        Some(args)
    }

    /// Returns what to do with the guide after these tests.
    pub(super) fn page(&self) -> Page {
        let is_part = self.scenario.is_some() || self.seeds.is_some();
        match self.store.as_deref() {
            // Fewer scenarios than the page lists.
            _ if is_part => Page::LeftAlone,
            _ if self.full => Page::WrittenInFull,
            Some("all") => Page::Written,
            Some(_) => Page::LeftAlone,
            None if self.runtime.is_some() => Page::LeftAlone,
            None => Page::Compared,
        }
    }
}
