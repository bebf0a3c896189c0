//! Redis for tests: empty, and with the strongest durability settings.
//!
//! Its data is private to this checkout and recreated each time the server starts.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::daemon::{self, Daemon};
use super::{Port, folder};
use crate::tools::Package;
use crate::{process, tools};

pub(super) const NAME: &str = "redis";

/// Not the default port of Redis, which may be in use by another database.
pub(super) const PORT: u16 = 54379;

pub(super) const STOP: Signal = Signal::TERM;

const PROGRAM: &str = "redis-server";

const PACKAGE: Package =
    Package { name: PROGRAM, provides: "redis-server", needed_for: "tests of the store" };

const TIMEOUT: Duration = Duration::from_secs(30);

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
    let folder = folder::fresh(NAME, None)?;
    let password = daemon::password()?;
    let configuration = folder.join("redis.conf");
    folder::write(&configuration, &settings(&folder, port, &password)?, None)?;
    let record = daemon::start(Daemon {
        name: NAME,
        url: format!("redis://:{password}@127.0.0.1:{port}"),
        command: vec![PROGRAM.to_owned(), text(&configuration)?.to_owned()],
        account: None,
        ready: &|| daemon::accepts(port),
        timeout: TIMEOUT,
        stop: STOP,
    })?;
    let log = daemon::log(NAME);
    println!("{NAME}: process {} on {}, log in {}", record.pid, record.url, log.display());
    Ok(())
}

fn settings(folder: &Path, port: u16, password: &str) -> Result<String> {
    let folder = text(folder)?;
    // A process title would hide the command line by which the server is found again.
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
    let text = path.to_str().filter(|text| !text.contains(['"', '\\', '\n']));
    text.with_context(|| format!("Redis cannot use the folder {}", path.display()))
}
