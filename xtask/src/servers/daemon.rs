//! Server processes that outlive this command, and their records.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use super::Port;
use super::account::Account;
use crate::process;

const FOLDER: &str = "target/servers";

/// The time that a process may take to stop before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// The data to find a server again. The command distinguishes it from a later process with the same id.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub pid: u32,
    /// The server's URL. testkit reads this field.
    pub url: String,
    command: Vec<String>,
}

impl Record {
    fn is_alive(&self) -> bool {
        command_of(self.pid).is_some_and(|command| command == self.command.join(" "))
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let pid = pid.with_context(|| format!("{} is not a process id", self.pid))?;
        // The process leads its own group. If it has just ended, the goal is reached.
        match kill_process_group(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("could not stop process {pid}", pid = self.pid))
            }
        }
    }
}

/// Returns the log file of a server.
pub(super) fn log(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name).with_extension("log")
}

/// Returns the record of a server, if this checkout started it and it still runs.
pub(super) fn running(name: &str) -> Result<Option<Record>> {
    Ok(recorded(name)?.filter(Record::is_alive))
}

/// The parameters to start a server.
pub(super) struct Daemon<'a> {
    pub name: &'a str,
    pub url: String,
    pub command: Vec<String>,
    /// The account that it runs as, if it is not the current user, and its working directory.
    pub account: Option<(Account, &'a Path)>,
    /// Returns `true` if the server accepts requests.
    pub ready: &'a dyn Fn() -> bool,
    pub timeout: Duration,
    /// The signal that stops it.
    pub stop: Signal,
}

/// Starts a server in its own process group and returns once it accepts requests.
///
/// # Errors
///
/// If the server ends, or is not ready before the timeout. It is stopped then, and the error has the end of its log.
pub(super) fn start(daemon: Daemon<'_>) -> Result<Record> {
    let Daemon { name, url, command, account, ready, timeout, stop: signal } = daemon;
    folder()?;
    let mut child = spawn(name, &command, account)?;
    let record = Record { pid: child.id(), url, command };
    let json = serde_json::to_string_pretty(&record).context("could not encode the record")?;
    std::fs::write(record_path(name), json + "\n").context("could not write the record")?;

    let started = Instant::now();
    let failure = loop {
        if ready() {
            return Ok(record);
        }
        if let Ok(Some(status)) = child.try_wait() {
            break format!("it ended with {status}");
        }
        if started.elapsed() > timeout {
            break format!("it was not ready within {} s", timeout.as_secs());
        }
        pause();
    };
    stop(name, signal)?;
    bail!("could not start {name}: {failure}; the end of {}:\n{}", log(name).display(), tail(name));
}

/// Stops a server, if it runs, and removes its record.
pub(super) fn stop(name: &str, signal: Signal) -> Result<Option<Record>> {
    let Some(record) = recorded(name)? else {
        return Ok(None);
    };
    let was_alive = record.is_alive();
    if was_alive {
        record.signal(signal)?;
        let started = Instant::now();
        while record.is_alive() && started.elapsed() < GRACE {
            pause();
        }
        if record.is_alive() {
            record.signal(Signal::KILL)?;
        }
    }
    std::fs::remove_file(record_path(name)).context("could not remove the record")?;
    Ok(was_alive.then_some(record))
}

/// Returns a free port of the loopback interface.
pub(super) fn free(port: Port) -> Result<u16> {
    match port {
        Port::Exactly(port) if is_taken(port) => {
            bail!("another program listens on port {port}; choose another one with --port N")
        }
        Port::Exactly(port) => Ok(port),
        Port::Preferred(port) if !is_taken(port) => Ok(port),
        Port::Preferred(_) => {
            let any = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
            Ok(any.local_addr().context("no port is free")?.port())
        }
    }
}

/// Returns the folder of records, logs and data, and creates it if necessary.
pub(super) fn folder() -> Result<&'static Path> {
    std::fs::create_dir_all(FOLDER).with_context(|| format!("could not create {FOLDER}"))?;
    Ok(Path::new(FOLDER))
}

/// Returns a random password, which keeps other users of this machine out of the server.
pub(super) fn password() -> Result<String> {
    let mut bytes = [0; 16];
    let mut source = File::open("/dev/urandom").context("no random bytes")?;
    source.read_exact(&mut bytes).context("no random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns `true` if a server accepts connections on this port of the loopback interface.
pub(super) fn accepts(port: u16) -> bool {
    connect(port).is_some()
}

/// Returns `true` if a GET request of this path is answered with 200.
pub(super) fn answers(port: u16, path: &str) -> bool {
    let ask = || {
        let mut stream = connect(port)?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).ok()?;
        Some(status.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}

/// Returns `true` if a server cannot listen on this port.
fn is_taken(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_err()
}

fn record_path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name).with_extension("json")
}

fn recorded(name: &str) -> Result<Option<Record>> {
    let path = record_path(name);
    match std::fs::read(&path) {
        Ok(json) => Ok(Some(
            serde_json::from_slice(&json)
                .with_context(|| format!("could not read {}", path.display()))?,
        )),
        Err(_) => Ok(None),
    }
}

fn spawn(name: &str, command: &[String], account: Option<(Account, &Path)>) -> Result<Child> {
    let (program, args) = command.split_first().context("an empty command")?;
    let log = File::create(log(name)).context("could not create the log")?;
    let mut process = process::program(program, args);
    if let Some((account, folder)) = account {
        account.apply_to(&mut process).current_dir(folder);
    }
    process
        .stdout(Stdio::from(log.try_clone().context("could not share the log")?))
        .stderr(Stdio::from(log))
        // A terminal's interrupt ends its foreground process group, but not the server.
        .process_group(0)
        .spawn()
        .with_context(|| format!("could not start {program}"))
}

/// Returns the command line of a process, or `None` if it has ended.
fn command_of(pid: u32) -> Option<String> {
    if let Ok(words) = std::fs::read(format!("/proc/{pid}/cmdline")) {
        let words = String::from_utf8_lossy(&words);
        return Some(words.trim_end_matches('\0').replace('\0', " "));
    }
    let ps = process::capture(&mut process::program(
        "ps",
        ["-ww", "-o", "args=", "-p", &pid.to_string()],
    ));
    ps.ok().map(|line| line.trim().to_owned())
}

fn connect(port: u16) -> Option<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(1)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    Some(stream)
}

fn tail(name: &str) -> String {
    let text = std::fs::read_to_string(log(name)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
}

#[expect(clippy::disallowed_methods, reason = "there is no executor to block")]
fn pause() {
    std::thread::sleep(Duration::from_millis(200));
}
