//! PgBouncer for tests, in front of their PostgreSQL: with transaction pooling, and with session pooling in the
//! database `session`.
//!
//! It has fewer server connections than the tests have clients, so that transactions of one client do use different
//! connections.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::Signal;

use super::account::Account;
use super::daemon::{self, Daemon};
use super::{Port, folder, postgres};
use crate::tools::Package;
use crate::{process, tools};

pub(super) const NAME: &str = "pgbouncer";

/// Not the default port of PgBouncer.
pub(super) const PORT: u16 = 54332;

/// Stops it after the open transactions.
pub(super) const STOP: Signal = Signal::INT;

const PACKAGE: Package =
    Package { name: NAME, provides: "PgBouncer", needed_for: "tests of the store" };

/// The path of the program on Debian, which is not in every user's `PATH`.
const DEBIAN: &str = "/usr/sbin/pgbouncer";

const TIMEOUT: Duration = Duration::from_secs(30);

/// Starts it in front of the tests' PostgreSQL, which is started if necessary.
pub(super) fn start(port: Port) -> Result<()> {
    let server = postgres::url()?;
    let server = Server::read(&server)?;
    if let Some(record) = daemon::running(NAME)? {
        if record.url.starts_with(&server.as_user()) {
            println!("{NAME}: already runs, process {} on {}", record.pid, record.url);
            return Ok(());
        }
        // It is connected to a server that no longer exists.
        daemon::stop(NAME, STOP)?;
    }
    let port = daemon::free(port)?;
    let program = program()?;
    let account = Account::unprivileged(&["postgres", "nobody"])?;
    let folder = folder::fresh(NAME, account)?;
    folder::write(&folder.join("users"), &server.users(), account)?;
    let settings = folder.join("pgbouncer.ini");
    folder::write(
        &settings,
        &settings_of(&server, &folder, port, supports_prepared_statements(&program)?),
        account,
    )?;
    let record = daemon::start(Daemon {
        name: NAME,
        url: format!("{}127.0.0.1:{port}/{}", server.as_user(), server.database),
        command: [program, settings].map(|path| path.to_string_lossy().into_owned()).into(),
        account: account.map(|account| (account, folder.as_path())),
        ready: &|| daemon::accepts(port),
        timeout: TIMEOUT,
        stop: STOP,
    })?;
    let log = daemon::log(NAME);
    println!("{NAME}: process {} on {}, log in {}", record.pid, record.url, log.display());
    Ok(())
}

fn program() -> Result<PathBuf> {
    let find = || {
        let places = [PathBuf::from(NAME), PathBuf::from(DEBIAN)];
        places
            .into_iter()
            .find(|program| process::succeeds(&mut process::program(program, ["--version"])))
    };
    if let Some(found) = find() {
        return Ok(found);
    }
    tools::install(&PACKAGE)?;
    find().context("the package was installed, but has no program; see above")
}

/// Returns `true` for version 1.21 or newer, which supports prepared statements with transaction pooling.
fn supports_prepared_statements(program: &Path) -> Result<bool> {
    let text = process::capture(&mut process::program(program, ["--version"]))?;
    Ok(super::version(&text).with_context(|| format!("no version in: {text}"))? >= (1, 21))
}

/// The parts of `postgres://user:password@host:port/database`.
struct Server<'a> {
    user: &'a str,
    password: &'a str,
    host: &'a str,
    port: &'a str,
    database: &'a str,
}

impl<'a> Server<'a> {
    fn read(url: &'a str) -> Result<Self> {
        let read = || {
            let (_, rest) = url.split_once("://")?;
            let (login, place) = rest.rsplit_once('@')?;
            let (user, password) = login.split_once(':')?;
            let (address, database) = place.split_once('/')?;
            let (host, port) = address.rsplit_once(':').unwrap_or((address, "5432"));
            let (database, _) = database.split_once('?').unwrap_or((database, ""));
            Some(Self { user, password, host, port, database })
        };
        read().context("PgBouncer needs a URL like postgres://user:password@host:port/database")
    }

    /// Returns the beginning of a URL with this user and password.
    fn as_user(&self) -> String {
        format!("postgres://{}:{}@", self.user, self.password)
    }

    fn users(&self) -> String {
        format!("\"{}\" \"{}\"\n", self.user, self.password)
    }
}

fn settings_of(
    server: &Server<'_>,
    folder: &Path,
    port: u16,
    supports_prepared_statements: bool,
) -> String {
    let Server { host, port: server_port, database, .. } = server;
    let users = folder.join("users");
    let statements =
        if supports_prepared_statements { "max_prepared_statements = 200\n" } else { "" };
    format!(
        "[databases]\n\
         {database} = host={host} port={server_port}\n\
         session = host={host} port={server_port} dbname={database} pool_mode=session pool_size=50\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = md5\n\
         auth_file = {users}\n\
         pool_mode = transaction\n\
         default_pool_size = 5\n\
         max_client_conn = 400\n\
         {statements}",
        users = users.display(),
    )
}
