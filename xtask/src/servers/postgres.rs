//! PostgreSQL for tests: an empty cluster of the installed version, with the durability settings of production.
//!
//! Its data is private to this checkout and recreated each time the server starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::account::Account;
use super::daemon::{self, Daemon};
use super::{Port, folder};
use crate::tools::Package;
use crate::{process, tools};

pub(super) const NAME: &str = "postgres";

/// Not the default port of PostgreSQL, which may be in use by another database.
pub(super) const PORT: u16 = 54329;

/// Stops it without waiting for its clients.
pub(super) const STOP: Signal = Signal::INT;

/// The folder of the programs on Debian, which is not in `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

const PACKAGE: Package = Package {
    name: "postgresql",
    provides: "PostgreSQL's initdb",
    needed_for: "tests of the store",
};

const USER: &str = "helix";

const TIMEOUT: Duration = Duration::from_secs(60);

/// The variable with the URL of another server for tests.
pub(super) const URL_VARIABLE: &str = "HELIX_TEST_POSTGRES_URL";

/// Returns the URL of the tests' server. Our own server is started if it does not run.
pub(super) fn url() -> Result<String> {
    if let Some(url) = super::url_from_environment(URL_VARIABLE) {
        return Ok(url);
    }
    start(Port::Preferred(PORT))?;
    Ok(daemon::running(NAME)?.context("PostgreSQL ended immediately")?.url)
}

/// Starts the server on fresh data.
pub(super) fn start(port: Port) -> Result<()> {
    if let Some(record) = daemon::running(NAME)? {
        println!("{NAME}: already runs, process {} on {}", record.pid, record.url);
        return Ok(());
    }
    let port = daemon::free(port)?;
    let programs = programs()?;
    let account = Account::unprivileged(&["postgres", "nobody"])?;
    let folder = folder::fresh(NAME, account)?;
    let password = daemon::password()?;
    create(&programs, &folder, account, &password)?;
    let record = daemon::start(Daemon {
        name: NAME,
        url: format!("postgres://{USER}:{password}@127.0.0.1:{port}/postgres"),
        command: command(&programs, &folder, port),
        account: account.map(|account| (account, folder.as_path())),
        ready: &|| is_ready(&programs, port),
        timeout: TIMEOUT,
        stop: STOP,
    })?;
    let log = daemon::log(NAME);
    println!("{NAME}: process {} on {}, log in {}", record.pid, record.url, log.display());
    Ok(())
}

/// Returns the folder with `initdb` and `postgres` of the newest installed version.
fn programs() -> Result<PathBuf> {
    if let Some(found) = find_programs() {
        return Ok(found);
    }
    tools::install(&PACKAGE)?;
    find_programs().context("the package was installed, but has no initdb; see above")
}

fn find_programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).find(|folder| is_complete(folder));
    in_path.or_else(|| {
        let versions = fs::read_dir(DEBIAN).ok()?.flatten().map(|entry| entry.path());
        let number = |folder: &PathBuf| folder.file_name()?.to_str()?.parse::<u32>().ok();
        let versions = versions.filter(|folder| is_complete(&folder.join("bin")));
        Some(versions.max_by_key(number)?.join("bin"))
    })
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres", "pg_isready"].iter().all(|program| folder.join(program).is_file())
}

fn create(programs: &Path, folder: &Path, account: Option<Account>, password: &str) -> Result<()> {
    let secret = folder.join("password");
    folder::write(&secret, password, account)?;
    let words = [
        "--username",
        USER,
        "--pwfile",
        &secret.to_string_lossy(),
        // The newer method costs each connection milliseconds, and tests open many.
        "--auth",
        "md5",
        "--encoding",
        "UTF8",
        "--locale",
        "C",
        "--no-sync",
        "--no-instructions",
        &data(folder),
    ];
    let mut initdb = process::program(programs.join("initdb"), words);
    if let Some(account) = account {
        account.apply_to(&mut initdb);
    }
    let created = process::capture(initdb.current_dir(folder)).map(drop);
    fs::remove_file(&secret).context("could not remove the password")?;
    created
}

fn data(folder: &Path) -> String {
    folder.join("data").to_string_lossy().into_owned()
}

fn command(programs: &Path, folder: &Path, port: u16) -> Vec<String> {
    let settings = [
        format!("port={port}"),
        "listen_addresses=127.0.0.1".to_owned(),
        "unix_socket_directories=".to_owned(),
        "fsync=on".to_owned(),
        "synchronous_commit=on".to_owned(),
        // Each test is a process with its own connections.
        "max_connections=300".to_owned(),
    ];
    let program = programs.join("postgres").to_string_lossy().into_owned();
    let settings = settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]);
    [program, "-D".to_owned(), data(folder)].into_iter().chain(settings).collect()
}

fn is_ready(programs: &Path, port: u16) -> bool {
    let words = ["--host", "127.0.0.1", "--port", &port.to_string()];
    process::succeeds(&mut process::program(programs.join("pg_isready"), words))
}
