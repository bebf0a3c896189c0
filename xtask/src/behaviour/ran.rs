//! The tests that ran and passed, from nextest's report of its last run.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use roxmltree::{Document, Node};

use super::entries::Entries;
use crate::suites;

/// The result of each test by name: `true` if it passed. A name is nextest's name of the binary, followed by the test's
/// path.
pub(super) struct Ran(BTreeMap<String, bool>);

impl Ran {
    pub(super) fn read(xml: &str) -> Result<Self> {
        let report = Document::parse(xml).context("the report of the tests is not XML")?;
        let cases = report.descendants().filter(|node| node.has_tag_name("testcase"));
        Ok(Self(cases.filter_map(case).collect()))
    }

    /// Returns a complaint for every scenario that did not run or did not pass.
    pub(super) fn check(&self, entries: &Entries) -> Vec<String> {
        let mut complaints = Vec::new();
        for (id, entry) in entries.iter() {
            for scenario in &entry.scenarios {
                let runs = self.runs(scenario);
                if runs.is_empty() {
                    complaints.push(format!(
                        "{id}: the last run of all tests has no test called {scenario}"
                    ));
                }
                let failed = runs.into_iter().filter(|(_, passed)| !passed);
                complaints.extend(failed.map(|(name, _)| format!("{id}: {name} failed")));
            }
        }
        complaints
    }

    /// Returns the test with this name, or the tests that a suite's scenario expanded to.
    fn runs(&self, scenario: &str) -> Vec<(&str, bool)> {
        let all = self.0.iter().map(|(name, passed)| (name.as_str(), *passed));
        all.filter(|(name, _)| *name == scenario || suites::is_run_of(name, scenario)).collect()
    }
}

fn case(case: Node<'_, '_>) -> Option<(String, bool)> {
    let (binary, name) = (case.attribute("classname")?, case.attribute("name")?);
    let failed = |node: Node<'_, '_>| node.has_tag_name("failure") || node.has_tag_name("error");
    Some((format!("{binary}::{name}"), !case.children().any(failed)))
}
