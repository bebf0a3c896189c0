//! `helix doctor`: checks the configuration, shows what it guarantees and why, and reports problems.
//!
//! The checks are functions of the libraries. This command prints their results.

mod configuration;
mod hints;
mod models;
mod page;
mod program;
mod runtimes;
mod stores;
mod telemetry;

use std::path::Path;

use anyhow::Result;
use helix_agents::finding::Finding;
use helix_agents::providers::ModelsDiagnosis;
use helix_agents::terminal::{Screen, Style};
use serde::Serialize;

use crate::exit::Exit;
use crate::text::count;

use configuration::Configuration;
use page::Page;
use program::Program;
use runtimes::Runtimes;
use stores::Stores;
use telemetry::Telemetry;

/// The report. Its members are a stable interface for scripts.
#[derive(Debug, Serialize)]
struct Report {
    /// Whether an agent can run with this configuration.
    ok: bool,
    program: Program,
    configuration: Configuration,
    models: ModelsDiagnosis,
    stores: Stores,
    runtimes: Runtimes,
    telemetry: Telemetry,
    /// Findings that may need attention.
    advice: Vec<Finding>,
    /// Findings that have to be fixed.
    problems: Vec<Finding>,
}

/// Runs the command. It creates and changes nothing.
pub(crate) async fn run(db: &Path, screen: &Screen) -> Result<Exit> {
    let configuration = Configuration::check();
    let models = match &configuration.diagnosis.registry {
        Some(registry) => ModelsDiagnosis::check(registry).await,
        None => ModelsDiagnosis::default(),
    };
    let stores = Stores::check(db).await?;
    let telemetry = Telemetry::check(configuration.diagnosis.error.is_none()).await;
    let of_models = [configuration.diagnosis.findings(), models.findings()].concat();
    let findings = of_models.into_iter().map(hints::of_models);
    let findings = findings.chain(stores.store.findings().into_iter().map(hints::of_store));
    let findings = findings.chain(telemetry.findings());
    let (problems, advice): (Vec<_>, Vec<_>) = findings.partition(Finding::is_problem);
    let report = Report {
        ok: problems.is_empty(),
        program: Program::check(),
        configuration,
        models,
        stores,
        runtimes: Runtimes::check(),
        telemetry,
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
        models::show(&self.models, page)?;
        self.stores.show(page)?;
        self.runtimes.show(page)?;
        self.telemetry.show(page)?;
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
