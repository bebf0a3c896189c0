//! PostgreSQL for tests: an empty cluster of the installed version, as durable as one in use.
//!
//! Its data is private to this checkout and begins anew each time the server is started.

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

/// Not the one where PostgreSQL usually listens: that is somebody's database.
pub(super) const PORT: u16 = 54329;

/// Ends it without waiting for those who are connected.
pub(super) const STOP: Signal = Signal::INT;

/// Where Debian keeps the programs, which are not in `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

const PACKAGE: Package = Package {
    name: "postgresql",
    provides: "PostgreSQL's initdb",
    needed_for: "tests of the store",
};

const USER: &str = "helix";

const PATIENCE: Duration = Duration::from_secs(60);

/// By which tests are told of another server.
pub(super) const INSTEAD: &str = "HELIX_TEST_POSTGRES_URL";

/// The server that tests use; it is started if it is ours and does not run.
pub(super) fn url() -> Result<String> {
    if let Some(url) = super::instead(INSTEAD) {
        return Ok(url);
    }
    start(Port::Wished(PORT))?;
    Ok(daemon::running(NAME)?.context("PostgreSQL ended at once")?.url)
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
        account: account.map(|it| (it, folder.as_path())),
        ready: &|| is_ready(&programs, port),
        patience: PATIENCE,
        stop: STOP,
    })?;
    let log = daemon::log(NAME);
    println!("{NAME}: process {} on {}, log in {}", record.pid, record.url, log.display());
    Ok(())
}

/// The folder with `initdb` and `postgres`, of the newest version that is installed.
fn programs() -> Result<PathBuf> {
    if let Some(found) = find_programs() {
        return Ok(found);
    }
    tools::install(&PACKAGE)?;
    find_programs().context("the package was installed, but has no initdb; see above")
}

fn find_programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path).find(|it| is_complete(it));
    in_path.or_else(|| {
        let versions = fs::read_dir(DEBIAN).ok()?.flatten().map(|it| it.path());
        let number = |it: &PathBuf| it.file_name()?.to_str()?.parse::<u32>().ok();
        let versions = versions.filter(|it| is_complete(&it.join("bin")));
        Some(versions.max_by_key(number)?.join("bin"))
    })
}

fn is_complete(folder: &Path) -> bool {
    ["initdb", "postgres", "pg_isready"].iter().all(|it| folder.join(it).is_file())
}

fn create(programs: &Path, folder: &Path, account: Option<Account>, password: &str) -> Result<()> {
    let secret = folder.join("password");
    folder::write(&secret, password, account)?;
    let words = [
        "--username",
        USER,
        "--pwfile",
        &secret.to_string_lossy(),
        // Not the newer method: it costs each connection milliseconds, and tests open many.
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
        account.take(&mut initdb);
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
        // Each test is a process with connections of its own.
        "max_connections=300".to_owned(),
    ];
    let program = programs.join("postgres").to_string_lossy().into_owned();
    let settings = settings.into_iter().flat_map(|it| ["-c".to_owned(), it]);
    [program, "-D".to_owned(), data(folder)].into_iter().chain(settings).collect()
}

fn is_ready(programs: &Path, port: u16) -> bool {
    let words = ["--host", "127.0.0.1", "--port", &port.to_string()];
    process::succeeds(&mut process::program(programs.join("pg_isready"), words))
}
