//! Which tests ran and passed, by nextest's report of its last run.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use roxmltree::{Document, Node};

use super::entries::Entries;
use crate::suites;

/// Where `.config/nextest.toml` has it written.
pub(crate) const REPORT: &str = "target/nextest/default/junit.xml";

/// Whether a test passed, by its name: that of its binary as nextest has it, then its path.
pub(super) struct Ran(BTreeMap<String, bool>);

impl Ran {
    pub(super) fn read(xml: &str) -> Result<Self> {
        let report = Document::parse(xml).with_context(|| format!("{REPORT} is no XML"))?;
        let cases = report.descendants().filter(|it| it.has_tag_name("testcase"));
        Ok(Self(cases.filter_map(case).collect()))
    }

    /// Every scenario that did not run or did not pass.
    pub(super) fn check(&self, entries: &Entries) -> Vec<String> {
        let mut complaints = Vec::new();
        for (id, entry) in entries.iter() {
            for scenario in &entry.scenarios {
                let runs = self.runs(scenario);
                if runs.is_empty() {
                    complaints.push(format!(
                        "{id}: no test of the last run of all tests is called {scenario}"
                    ));
                }
                let failed = runs.into_iter().filter(|(_, passed)| !passed);
                complaints.extend(failed.map(|(name, _)| format!("{id}: {name} failed")));
            }
        }
        complaints
    }

    /// The test of that name, or the tests that a scenario of a suite has become.
    fn runs(&self, scenario: &str) -> Vec<(&str, bool)> {
        let all = self.0.iter().map(|(name, passed)| (name.as_str(), *passed));
        all.filter(|(name, _)| *name == scenario || suites::is_run_of(name, scenario)).collect()
    }
}

fn case(case: Node<'_, '_>) -> Option<(String, bool)> {
    let (binary, name) = (case.attribute("classname")?, case.attribute("name")?);
    let failed = |it: Node<'_, '_>| it.has_tag_name("failure") || it.has_tag_name("error");
    Some((format!("{binary}::{name}"), !case.children().any(failed)))
}
