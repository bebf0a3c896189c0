//! Redis for tests: empty, and as durable as Redis gets.
//!
//! Its data is private to this checkout and begins anew each time the server is started.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::Port;
use super::daemon::{self, Daemon};
use crate::tools::Package;
use crate::{process, tools};

pub(super) const NAME: &str = "redis";

/// Not the one where Redis usually listens: that is somebody's database.
pub(super) const PORT: u16 = 54379;

pub(super) const STOP: Signal = Signal::TERM;

const PROGRAM: &str = "redis-server";

const PACKAGE: Package =
    Package { name: PROGRAM, provides: "redis-server", needed_for: "tests of the store" };

const PATIENCE: Duration = Duration::from_secs(30);

/// Starts the server on fresh data.
pub(super) fn start(port: Port) -> Result<()> {
    if let Some(record) = daemon::running(NAME)? {
        println!("{NAME}: already runs, process {} on {}", record.pid, record.url);
        return Ok(());
    }
    let port = daemon::free(port)?;
    if !process::succeeds(&mut process::program(PROGRAM, ["--version"])) {
        tools::install(&PACKAGE)?;
    }
    let folder = fresh_folder()?;
    let password = daemon::password()?;
    let configuration = folder.join("redis.conf");
    fs::write(&configuration, settings(&folder, port, &password)?)
        .context("could not write the configuration")?;
    let record = daemon::start(Daemon {
        name: NAME,
        url: format!("redis://:{password}@127.0.0.1:{port}"),
        command: vec![PROGRAM.to_owned(), text(&configuration)?.to_owned()],
        account: None,
        ready: &|| daemon::accepts(port),
        patience: PATIENCE,
        stop: STOP,
    })?;
    let log = daemon::log(NAME);
    println!("{NAME}: process {} on {}, log in {}", record.pid, record.url, log.display());
    Ok(())
}

/// An empty folder for configuration and data, which nobody else can read.
fn fresh_folder() -> Result<PathBuf> {
    let own = fs::canonicalize(daemon::folder()?).context("could not find our own folder")?;
    let folder = own.join(NAME);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("could not clear {}", folder.display()))?;
    }
    let created = DirBuilder::new().mode(0o700).create(&folder);
    created.with_context(|| format!("could not create {}", folder.display()))?;
    Ok(folder)
}

fn settings(folder: &Path, port: u16, password: &str) -> Result<String> {
    let folder = text(folder)?;
    // Its title would hide the command by which it is found again.
    Ok(format!(
        "bind 127.0.0.1\n\
         port {port}\n\
         requirepass {password}\n\
         dir \"{folder}\"\n\
         appendonly yes\n\
         appendfsync always\n\
         save \"\"\n\
         maxmemory-policy noeviction\n\
         set-proc-title no\n"
    ))
}

fn text(path: &Path) -> Result<&str> {
    let text = path.to_str().filter(|it| !it.contains(['"', '\\', '\n']));
    text.with_context(|| format!("Redis cannot be told of the folder {}", path.display()))
}
