//! Addresses of the servers that tests use.
//!
//! `cargo xtask test --gate` and `cargo xtask e2e` start the servers. `cargo xtask servers up` starts them for other
//! commands. Each test uses names of its own from [`unique`], and removes its data when it ends.

use std::net::TcpStream;
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;

/// Returns the URL of a PostgreSQL server whose user may create databases: `HELIX_TEST_POSTGRES_URL`, or the
/// server that xtask started.
///
/// # Panics
/// If there is no server. A test that needs a missing server fails.
#[must_use]
pub fn postgres() -> String {
    url("postgres", "HELIX_TEST_POSTGRES_URL")
}

/// Returns the URL of a connection pooler in front of the server of [`postgres`]: `HELIX_TEST_PGBOUNCER_URL`,
/// or the one that xtask started. It uses transaction pooling; its database `session` uses session pooling.
///
/// # Panics
/// If there is no pooler. A test that needs a missing server fails.
#[must_use]
pub fn pgbouncer() -> String {
    url("pgbouncer", "HELIX_TEST_PGBOUNCER_URL")
}

/// Returns the URL of a Redis server with `noeviction`: `HELIX_TEST_REDIS_URL`, or the server that xtask
/// started.
///
/// # Panics
/// If there is no server. A test that needs a missing server fails.
#[must_use]
pub fn redis() -> String {
    url("redis", "HELIX_TEST_REDIS_URL")
}

/// Returns the URL of a Temporal server with a namespace `default`: `HELIX_TEST_TEMPORAL_URL`, or the server
/// that xtask started.
///
/// # Panics
/// If there is no server. A test that needs a missing server fails.
#[must_use]
pub fn temporal() -> String {
    url("temporal", "HELIX_TEST_TEMPORAL_URL")
}

/// Returns the command that starts a separate Temporal server like that of [`temporal`] for one test, on this
/// port of the loopback address, with its data in this file.
///
/// # Panics
/// If xtask started no Temporal server, because then the location of the program is unknown.
#[must_use]
pub fn temporal_command(port: u16, data: &str) -> Vec<String> {
    let record = record("temporal");
    let record =
        record.unwrap_or_else(|| panic!("run `cargo xtask servers up`, which installs it"));
    let mut command = record.command;
    let mut set = |option: &str, value: String| {
        let at = command.iter().position(|word| word == option);
        let word = at.and_then(|at| command.get_mut(at + 1));
        *word.unwrap_or_else(|| panic!("Temporal was started without {option}")) = value;
    };
    set("--port", port.to_string());
    set("--db-filename", data.to_owned());
    command
}

/// Returns a name that no other test of any process has: lower case, at most 40 bytes, valid as an
/// identifier.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "names have to differ from those of other runs")]
pub fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
    format!("t{:x}_{:x}_{count}", nanos & u128::from(u64::MAX), process::id())
}

/// Work that runs on drop, on a thread and an executor of its own. A test uses it to clean up a server,
/// whatever the state of the test's own executor.
#[must_use]
pub struct Afterwards(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Afterwards {
    /// Creates the guard with the work to run.
    pub fn new<F>(work: impl FnOnce() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()>,
    {
        let block = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(work());
        };
        Self(Some(Box::new(block)))
    }
}

impl Drop for Afterwards {
    fn drop(&mut self) {
        let Some(work) = self.0.take() else { return };
        let done = std::thread::spawn(work).join();
        // A second panic would hide the first.
        if !std::thread::panicking() {
            done.unwrap();
        }
    }
}

impl std::fmt::Debug for Afterwards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Afterwards")
    }
}

/// The file that xtask wrote about a server that it started.
#[derive(Deserialize)]
struct Record {
    url: String,
    command: Vec<String>,
}

fn url(name: &str, variable: &str) -> String {
    if let Some(url) = std::env::var(variable).ok().filter(|url| !url.is_empty()) {
        return url;
    }
    let found = record(name).map(|record| record.url).filter(|url| answers(url));
    found.unwrap_or_else(|| panic!("{name} is not running; run `cargo xtask servers up`"))
}

fn record(name: &str) -> Option<Record> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/servers");
    let json = std::fs::read(folder.join(name).with_extension("json")).ok()?;
    serde_json::from_slice(&json).ok()
}

/// Returns `true` if a server listens at the address of `scheme://user@address/path`.
fn answers(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split_once('/').map_or(rest, |(authority, _)| authority);
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    TcpStream::connect(address).is_ok()
}
