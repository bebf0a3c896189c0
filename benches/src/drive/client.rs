//! Measured processes as the driver has them.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use super::PATIENCE;
use crate::job::{Job, Outcome, Store, Subject, Wire, Work};
use crate::probe::{Of, Probe};

/// Starts one process for each job.
pub(super) struct Client {
    program: PathBuf,
    port: u16,
    /// Each job has a folder of its own in it.
    scratch: TempDir,
}

/// What came of a job, and how long its process lived.
#[derive(Clone)]
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    pub(super) lived: Duration,
}

impl Client {
    pub(super) fn new(program: PathBuf, port: u16) -> Result<Self> {
        let scratch = tempfile::tempdir().context("no scratch folder")?;
        Ok(Self { program, port, scratch })
    }

    /// A job of one run after another, on the server's processor.
    pub(super) fn job(&self, subject: Subject, wire: Wire, work: Work) -> Job {
        Job {
            subject,
            wire,
            work,
            port: self.port,
            warm: 0,
            runs: 1,
            at_once: 1,
            threads: 1,
            beside: true,
            folder: PathBuf::new(),
            inspect: false,
        }
    }

    /// Does a job.
    pub(super) async fn measure(&self, job: &Job) -> Result<Measured> {
        self.measure_under(job, |program| Command::new(program)).await.map(|it| it.0)
    }

    /// Does a job under a program that watches it; returns what that one printed as errors.
    pub(super) async fn measure_under(
        &self,
        job: &Job,
        watched: impl FnOnce(&PathBuf) -> Command,
    ) -> Result<(Measured, String)> {
        let folder = tempfile::tempdir_in(self.scratch.path())?;
        let job = Job { folder: folder.path().to_owned(), ..job.clone() };
        let begun = Instant::now();
        let command = watched(&self.program);
        let (output, errors) = answer(command, "measure", &serde_json::to_string(&job)?).await?;
        let lived = begun.elapsed();
        let outcome = serde_json::from_slice(&output).context("no outcome was printed")?;
        Ok((Measured { outcome, lived }, errors))
    }

    /// Measures a store alone.
    pub(super) async fn probe<T: DeserializeOwned>(&self, store: Store, of: Of) -> Result<T> {
        let folder = tempfile::tempdir_in(self.scratch.path())?;
        let probe = Probe { store, of, folder: folder.path().to_owned() };
        let command = Command::new(&self.program);
        let (output, _) = answer(command, "probe", &serde_json::to_string(&probe)?).await?;
        serde_json::from_slice(&output).context("what was found cannot be read")
    }
}

/// What a process prints that measures what is asked, and as errors.
async fn answer(mut command: Command, role: &str, asked: &str) -> Result<(Vec<u8>, String)> {
    command.args([role, asked]).kill_on_drop(true).stdin(Stdio::null());
    let output = timeout(PATIENCE, command.output());
    let output = output.await.with_context(|| format!("no end within {PATIENCE:?}: {asked}"))?;
    let output = output.context("the process to be measured did not start")?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{} of {asked}: {errors}", output.status);
    }
    Ok((output.stdout, errors))
}
