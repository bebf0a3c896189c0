//! The measured processes, as the driver sees them.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use super::TIMEOUT;
use crate::job::{Format, Job, Outcome, Store, Subject, Wire, Work};
use crate::probe::{Probe, ProbeKind};

/// Starts one process per job.
pub(super) struct Client {
    program: PathBuf,
    port: u16,
    /// The parent of the jobs' folders.
    scratch: TempDir,
}

/// The outcome of a job and the lifetime of its process.
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

    /// Returns a job with sequential runs on the server's processor, in Chat Completions.
    pub(super) fn job(&self, subject: Subject, wire: Wire, work: Work) -> Job {
        Job {
            subject,
            format: Format::OpenaiChat,
            wire,
            work,
            port: self.port,
            warm: 0,
            runs: 1,
            at_once: 1,
            threads: 1,
            same_processor: true,
            folder: PathBuf::new(),
            inspect: false,
            telemetry: false,
        }
    }

    /// Runs a job.
    pub(super) async fn measure(&self, job: &Job) -> Result<Measured> {
        self.measure_under(job, |program| Command::new(program)).await.map(|(measured, _)| measured)
    }

    /// Runs a job under an instrumenting program. Also returns the standard error.
    pub(super) async fn measure_under(
        &self,
        job: &Job,
        watched: impl FnOnce(&PathBuf) -> Command,
    ) -> Result<(Measured, String)> {
        let folder = tempfile::tempdir_in(self.scratch.path())?;
        let job = Job { folder: folder.path().to_owned(), ..job.clone() };
        let started = Instant::now();
        let command = watched(&self.program);
        let (output, errors) = run_role(command, "measure", &serde_json::to_string(&job)?).await?;
        let lived = started.elapsed();
        let outcome = serde_json::from_slice(&output).context("no outcome was printed")?;
        Ok((Measured { outcome, lived }, errors))
    }

    /// Runs a probe of a store.
    pub(super) async fn probe<T: DeserializeOwned>(
        &self,
        store: Store,
        kind: ProbeKind,
    ) -> Result<T> {
        let folder = tempfile::tempdir_in(self.scratch.path())?;
        let probe = Probe { store, kind, folder: folder.path().to_owned() };
        let command = Command::new(&self.program);
        let (output, _) = run_role(command, "probe", &serde_json::to_string(&probe)?).await?;
        serde_json::from_slice(&output).context("the result of the probe is unreadable")
    }
}

/// Runs a measuring process. Returns its standard output and standard error.
async fn run_role(mut command: Command, role: &str, argument: &str) -> Result<(Vec<u8>, String)> {
    command.args([role, argument]).kill_on_drop(true).stdin(Stdio::null());
    let output = timeout(TIMEOUT, command.output());
    let output = output
        .await
        .with_context(|| format!("the process did not end within {TIMEOUT:?}: {argument}"))?;
    let output = output.context("the measured process did not start")?;
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        bail!("{} of {argument}: {errors}", output.status);
    }
    Ok((output.stdout, errors))
}
