//! `helix doctor`: checks the configuration, shows what it guarantees and why, and reports problems.

mod configuration;
mod disk;
mod finding;
mod models;
mod page;
mod postgres;
mod program;
mod redis;
mod runtimes;
mod stores;

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::exit::Exit;
use crate::screen::{Screen, Style};
use crate::text::count;

use configuration::Configuration;
use finding::{Finding, Findings};
use models::Models;
use page::Page;
use program::Program;
use runtimes::Runtimes;
use stores::Stores;

/// The report. Its members are a stable interface for scripts.
#[derive(Debug, Serialize)]
struct Report {
    /// Whether an agent can run with this configuration.
    ok: bool,
    program: Program,
    configuration: Configuration,
    models: Models,
    stores: Stores,
    runtimes: Runtimes,
    /// Findings that may need attention.
    advice: Vec<Finding>,
    /// Findings that have to be fixed.
    problems: Vec<Finding>,
}

/// Runs the command. It creates and changes nothing.
pub(crate) async fn run(db: &Path, screen: &Screen) -> Result<Exit> {
    let mut findings = Findings::default();
    let configuration = Configuration::check(&mut findings);
    let models = Models::check(&configuration, &mut findings).await;
    let stores = Stores::check(db, &mut findings).await;
    let Findings { advice, problems } = findings;
    let report = Report {
        ok: problems.is_empty(),
        program: Program::check(),
        configuration,
        models,
        stores,
        runtimes: Runtimes::check(),
        advice,
        problems,
    };
    if screen.is_json() {
        screen.json(&report)?;
    } else {
        report.show(&Page::new(screen))?;
    }
    Ok(if report.ok { Exit::Completed } else { Exit::Failed })
}

impl Report {
    fn show(&self, page: &Page<'_>) -> std::io::Result<()> {
        self.program.show(page)?;
        self.configuration.show(page)?;
        self.models.show(page)?;
        self.stores.show(page)?;
        self.runtimes.show(page)?;
        if !self.advice.is_empty() {
            page.heading("Advice")?;
            for finding in &self.advice {
                page.finding(finding)?;
            }
        }
        if self.ok {
            return page.verdict(Style::Good, "The configuration is complete: agents can run.");
        }
        page.heading("Problems")?;
        for finding in &self.problems {
            page.finding(finding)?;
        }
        let problems = count(self.problems.len() as u64, "problem");
        page.verdict(Style::Bad, &format!("{problems}: see above how to fix this."))
    }
}
