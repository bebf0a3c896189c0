//! Instruction counting: with the processor's counters if they are available, else with valgrind,
//! else not at all. Both count user-mode instructions only.

use std::process::Stdio;

use anyhow::{Context as _, Result};
use serde::Serialize;
use tokio::process::Command;

use super::client::Client;
use crate::job::Job;

/// The method of counting instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Counter {
    /// `perf stat`.
    Perf,
    /// `valgrind --tool=callgrind`.
    Callgrind,
    /// No counting. Processor time has to suffice.
    None,
}

impl Counter {
    /// Returns the best method that this machine supports.
    pub(super) async fn find() -> Self {
        let nothing = || Command::new("true");
        if let Some(output) = output_of(perf(&nothing())).await
            && count_of_perf(&output).is_some()
        {
            return Self::Perf;
        }
        if let Some(output) = output_of(callgrind(&nothing())).await
            && count_of_callgrind(&output).is_some()
        {
            return Self::Callgrind;
        }
        Self::None
    }

    /// Returns the instructions per run. It is computed as the difference between many and few
    /// runs, so that process startup does not count.
    pub(super) async fn per_run(self, client: &Client, job: &Job) -> Result<Option<f64>> {
        let (few, many) = (job.runs.div_ceil(3), job.runs + job.runs.div_ceil(3));
        let few = self.count(client, &Job { runs: few, ..job.clone() }).await?;
        let many = self.count(client, &Job { runs: many, ..job.clone() }).await?;
        Ok(few.zip(many).map(|(few, many)| (many - few) / f64::from(job.runs)))
    }

    /// Returns the instructions of a whole process.
    pub(super) async fn count(self, client: &Client, job: &Job) -> Result<Option<f64>> {
        let watched = |program: &std::path::PathBuf| {
            let program = Command::new(program);
            match self {
                Self::Perf => perf(&program),
                _ => callgrind(&program),
            }
        };
        let errors = match self {
            Self::None => return Ok(None),
            _ => client.measure_under(job, watched).await?.1,
        };
        let count = match self {
            Self::Perf => count_of_perf(&errors),
            _ => count_of_callgrind(&errors),
        };
        count.context("the instructions were not counted").map(Some)
    }
}

fn perf(watched: &Command) -> Command {
    let mut command = Command::new("perf");
    command.args(["stat", "-x", ",", "-e", "instructions:u", "--"]);
    command.arg(watched.as_std().get_program());
    command
}

fn callgrind(watched: &Command) -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--"]);
    command.arg(watched.as_std().get_program());
    command
}

async fn output_of(mut command: Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Parses `123456,,instructions:u,…`.
fn count_of_perf(output: &str) -> Option<f64> {
    let line = output.lines().find(|line| line.contains("instructions:u"))?;
    line.split(',').next()?.parse().ok()
}

/// Parses `==1== Collected : 123456`.
fn count_of_callgrind(output: &str) -> Option<f64> {
    let line = output.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}
