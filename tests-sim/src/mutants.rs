//! Mutation tests of the simulation: guards of the product are removed, one at a time, and stories run until one fails.

use std::fmt;

use helix_agents_core::mutants::{ALL, Mutant, select};

use crate::many::{Plan, run_many};

/// The maximum number of stories that run to find a mutant.
const MAX_STORIES: u64 = 10_000;

/// The outcome of one mutant.
#[derive(Debug, Clone)]
pub struct Hunted {
    /// The mutant.
    pub mutant: Mutant,
    /// The number of stories until one failed, and its problem. `None` if no story failed.
    pub found: Option<(u64, String)>,
    /// The number of executed stories.
    pub stories: u64,
}

impl Hunted {
    /// Returns `true` if a story failed, or if the mutant is left to a test. `cargo xtask sim --mutants` runs these
    /// tests.
    #[must_use]
    pub fn is_noticed_or_tested(&self) -> bool {
        self.found.is_some() || self.mutant.test.is_some()
    }
}

/// Writes a row of the table in the guide.
impl fmt::Display for Hunted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mutant, found, stories } = self;
        write!(f, "| `{}` | {} | ", mutant.name, mutant.does)?;
        match (found, mutant.test) {
            (Some((after, by)), _) => write!(f, "{after} | {by} |"),
            (None, Some(test)) => write!(f, "outside | the test `{}` |", test.name),
            (None, None) => write!(f, "not within {stories} | |"),
        }
    }
}

/// The header of the table in the guide.
pub const HEAD: &str = "| mutant | defect | stories | message of the failure |\n|---|---|---|---|";

/// Runs every mutant, and passes each outcome to `report_row` as soon as it is known. The plan has the first seed.
pub fn hunt_all(
    plan: &Plan,
    only: Option<&str>,
    mut report_row: impl FnMut(&Hunted),
) -> Vec<Hunted> {
    let selected = ALL.iter().filter(|mutant| only.is_none_or(|only| only == mutant.name));
    let hunted = selected.map(|mutant| {
        let hunted = hunt(plan, *mutant);
        report_row(&hunted);
        hunted
    });
    hunted.collect()
}

fn hunt(plan: &Plan, mutant: Mutant) -> Hunted {
    if mutant.test.is_some() {
        return Hunted { mutant, found: None, stories: 0 };
    }
    select(Some(mutant.name));
    let plan =
        Plan { stories: plan.stories.min(MAX_STORIES), kinds: 1, simplify: false, ..plan.clone() };
    let report = run_many(&plan);
    select(None);
    let found = report.failed.first().map(|failure| (report.stories, short(&failure.problem)));
    Hunted { mutant, found, stories: report.stories }
}

/// Returns the first problem as a table cell, without the parts that differ between stories.
fn short(problem: &str) -> String {
    let line = problem.lines().next().unwrap_or_default();
    let named = |id: &str| id.starts_with("root") || id.starts_with("a run in process");
    let text = line.split_once(": ").filter(|(id, _)| named(id)).map_or(line, |(_, text)| text);
    let text = text.split([':', '[', '{', '(', '|', ';']).next().unwrap_or_default();
    let word = |word: &str| if word.contains("_000") { "…" } else { word }.to_owned();
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}
