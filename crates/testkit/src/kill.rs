//! Workers that are killed at a chosen fault point: real processes, real SIGKILL.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use helix_agents_core::fault;

/// At which fault point, counted from 1, a worker kills itself.
pub const KILL_AT: &str = "HELIX_KILL_AT";

/// The file into which a worker writes the name of every fault point it passes.
pub const POINTS_FILE: &str = "HELIX_POINTS_FILE";

static PASSED: AtomicUsize = AtomicUsize::new(0);
static PLAN: OnceLock<Plan> = OnceLock::new();

#[derive(Debug)]
struct Plan {
    kill_at: Option<usize>,
    points: Option<PathBuf>,
}

/// Makes this process a worker, as its environment says. To be called first in `main`.
pub fn install_from_env() {
    let kill_at = std::env::var(KILL_AT).ok().and_then(|number| number.parse().ok());
    let points = std::env::var_os(POINTS_FILE).map(PathBuf::from);
    if PLAN.set(Plan { kill_at, points }).is_ok() {
        fault::set_handler(pass);
    }
}

fn pass(name: &'static str) {
    let Some(plan) = PLAN.get() else { return };
    let passed = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    if let Some(points) = &plan.points {
        note(points, name);
    }
    if plan.kill_at == Some(passed) {
        // SIGKILL cannot be caught, so nothing is cleaned up and nothing is flushed.
        let own = rustix::process::getpid();
        let sent = rustix::process::kill_process(own, rustix::process::Signal::KILL);
        assert!(sent.is_ok(), "the worker cannot kill itself: {sent:?}");
    }
}

fn note(points: &Path, name: &str) {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new().create(true).append(true).open(points);
    let written = file.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes()));
    assert!(written.is_ok(), "the points file cannot be written: {written:?}");
}

/// How a worker ended, and what it passed.
#[derive(Debug)]
pub struct WorkerEnd {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// The fault points that it passed, in order.
    pub points: Vec<String>,
}

impl WorkerEnd {
    /// Whether it was killed rather than ending by itself.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        use std::os::unix::process::ExitStatusExt as _;
        self.status.signal() == Some(9)
    }
}

/// Runs a worker to its end, killing it at the n-th fault point if it comes that far.
///
/// # Panics
/// If it cannot be started.
#[must_use]
pub fn run_worker(mut command: Command, scratch: &Path, kill_at: Option<usize>) -> WorkerEnd {
    let points = scratch.join("points");
    drop(std::fs::remove_file(&points));
    command.env(POINTS_FILE, &points).stdin(Stdio::null());
    match kill_at {
        Some(number) => command.env(KILL_AT, number.to_string()),
        None => command.env_remove(KILL_AT),
    };
    let output = command.output().unwrap();
    let points = std::fs::read_to_string(&points).unwrap_or_default();
    WorkerEnd {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        points: points.lines().map(str::to_owned).collect(),
    }
}
