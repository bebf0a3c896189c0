//! `frontends`: runs the real clients of the AI SDK and of AG-UI, with recorded responses and with the example `clerk`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::test::tier::Tier;
use crate::tools::Package;
use crate::{process, servers, tools};

mod options;

#[cfg(test)]
mod tests;

use options::{Options, Runtime, Store, Suite};

/// The folder with the tests in JavaScript.
const TESTS: &str = "tests-frontends";

/// The folder with the page for `useChat`.
const PAGE: &str = "examples/web-chat";

/// The folder in which tests of the translators leave their responses.
const RECORDINGS: &str = "target/frontends";

/// The number of recorded stories.
const SEEDS: &str = "500";

/// The oldest version of Node that the packages support.
const NODE: u32 = 20;

/// The time limit of a file with tests, in milliseconds. Each operation of a test has a shorter one of its own.
const TIMEOUT: &str = "900000";

const NEEDED_FOR: &str = "the tests of front ends";

/// Runs the selected tests.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let options = Options::read(args)?;
    ensure_node()?;
    npm(TESTS, &["ci"])?;
    if options.suites.contains(&Suite::Stories) {
        play_stories()?;
    }
    let files: Vec<&str> = options.suites.iter().flat_map(|suite| suite.files()).copied().collect();
    if files.is_empty() {
        return Ok(());
    }
    let needs_servers = options.runtime.server().is_some()
        || options.stores.iter().any(|store| store.server().is_some());
    let features: &[&str] = if needs_servers { &["--features", "servers"] } else { &[] };
    let clerk = process::build("helix-agents-examples", "clerk", features)?;
    let mut tests = Live { files, clerk, runtime: options.runtime, browser: None };
    if options.suites.contains(&Suite::Chat) {
        npm(PAGE, &["ci"])?;
        npm(PAGE, &["run", "build"])?;
        tests.browser = Some(chromium()?);
    }
    if needs_servers {
        servers::up()?;
    }
    let failed: Vec<&str> = options
        .stores
        .iter()
        .filter(|store| {
            println!("\nFront ends on {} with {}:", options.runtime.name(), store.name());
            let tested = tests.run(**store);
            tested.inspect_err(|error| eprintln!("{error:#}")).is_err()
        })
        .map(|store| store.name())
        .collect();
    if failed.is_empty() { Ok(()) } else { bail!("failed on {}", failed.join(", ")) }
}

/// Runs all tests on SQLite in the deep tier, and none before.
pub(crate) fn run_for_ci(tier: Tier) -> Result<()> {
    if tier == Tier::Deep {
        return run(&[]);
    }
    println!("frontends: only with --deep");
    Ok(())
}

/// The tests with a server.
struct Live<'a> {
    files: Vec<&'a str>,
    /// The program of the server.
    clerk: PathBuf,
    runtime: Runtime,
    /// The browser, for the tests of the page.
    browser: Option<PathBuf>,
}

impl Live<'_> {
    fn run(&self, store: Store) -> Result<()> {
        let mut node =
            process::program("node", ["--test", "--test-concurrency=1", "--test-reporter=spec"]);
        node.arg(format!("--test-timeout={TIMEOUT}")).current_dir(TESTS);
        node.args(self.files.iter().map(|file| format!("live/{file}")));
        node.env("HELIX_CLERK", &self.clerk).env("HELIX_STORE", store.name());
        if let Some(browser) = &self.browser {
            let page = std::path::absolute(Path::new(PAGE).join("dist"))?;
            node.env("HELIX_CHROMIUM", browser).env("HELIX_WEB_CHAT", page);
        }
        node.env("HELIX_RUNTIME", self.runtime.name());
        for server in store.server().into_iter().chain(self.runtime.server()) {
            node.env(server.variable, servers::url(server.name)?);
        }
        process::run(&mut node)
    }
}

/// Records responses of the translators, and plays them to the clients.
fn play_stories() -> Result<()> {
    let folder = std::path::absolute(RECORDINGS)?;
    // The tests append to the recordings.
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("could not remove {RECORDINGS}"))?;
    }
    std::fs::create_dir_all(&folder).with_context(|| format!("could not create {RECORDINGS}"))?;
    let test = ["test", "--package", "helix-agents-protocols", "--test", "it"];
    process::run(process::cargo(test).env("HELIX_FRAMES", &folder).env("HELIX_SEEDS", SEEDS))?;
    let check = [Path::new("check.mjs"), folder.as_path()];
    process::run(process::program("node", check).current_dir(TESTS))
}

/// Checks that there is a usable Node, or installs one.
fn ensure_node() -> Result<()> {
    let works = |name| process::succeeds(&mut process::program(name, ["--version"]));
    for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
        if !works(program) {
            let (name, provides) = (package, program);
            tools::install(&Package { name, provides, needed_for: NEEDED_FOR })?;
        }
    }
    let found = process::capture(&mut process::program("node", ["--version"]))?;
    let is_new = servers::version(&found).is_some_and(|(major, _)| major >= NODE);
    if !is_new {
        bail!("{NEEDED_FOR} need Node {NODE} or newer; this is {}", found.trim());
    }
    Ok(())
}

/// Runs npm in a folder.
fn npm(folder: &str, args: &[&str]) -> Result<()> {
    let quiet = ["--no-audit", "--no-fund", "--no-update-notifier"];
    let mut npm = process::program("npm", args.iter().copied().chain(quiet));
    process::run(npm.current_dir(folder))
}

/// Returns the path of Chromium, which is installed if it is missing.
fn chromium() -> Result<PathBuf> {
    let package = Package { name: "chromium", provides: "chromium", needed_for: NEEDED_FOR };
    if let Some(found) = path_of(package.provides) {
        return Ok(found);
    }
    tools::install(&package)?;
    path_of(package.provides).context("the package chromium contains no program `chromium`")
}

/// Returns the path of a program.
fn path_of(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}
