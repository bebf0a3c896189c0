//! A process that outlives us, and the record by which it is found again.

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

/// How long a process may take to go before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// What is needed to find a server again. The command tells it from a later process with the same number.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub pid: u32,
    /// Where it is reached; testkit reads this.
    pub url: String,
    command: Vec<String>,
}

impl Record {
    fn is_alive(&self) -> bool {
        command_of(self.pid).is_some_and(|it| it == self.command.join(" "))
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let pid = pid.with_context(|| format!("{} is no process number", self.pid))?;
        // The process leads a group of its own. That it has just gone is what we want.
        match kill_process_group(pid, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => {
                Err(error).with_context(|| format!("could not stop process {pid}", pid = self.pid))
            }
        }
    }
}

/// Where the server of this name writes.
pub(super) fn log(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name).with_extension("log")
}

/// The server of this name, if it was started from here and still runs.
pub(super) fn running(name: &str) -> Result<Option<Record>> {
    Ok(recorded(name)?.filter(Record::is_alive))
}

/// How to start a server.
pub(super) struct Daemon<'a> {
    pub name: &'a str,
    pub url: String,
    pub command: Vec<String>,
    /// Who it runs as, if not as us, and in which folder.
    pub account: Option<(Account, &'a Path)>,
    /// Whether it answers.
    pub ready: &'a dyn Fn() -> bool,
    pub patience: Duration,
    /// What asks it to end.
    pub stop: Signal,
}

/// Starts a server in a process group of its own and returns once it answers.
///
/// # Errors
///
/// If it ends, or does not answer in time; it is stopped then, and the end of its log is in the message.
pub(super) fn start(daemon: Daemon<'_>) -> Result<Record> {
    let Daemon { name, url, command, account, ready, patience, stop: signal } = daemon;
    folder()?;
    let mut child = spawn(name, &command, account)?;
    let record = Record { pid: child.id(), url, command };
    let json = serde_json::to_string_pretty(&record).context("could not encode the record")?;
    std::fs::write(record_path(name), json + "\n").context("could not write the record")?;

    let begun = Instant::now();
    let failure = loop {
        if ready() {
            return Ok(record);
        }
        if let Ok(Some(status)) = child.try_wait() {
            break format!("it ended with {status}");
        }
        if begun.elapsed() > patience {
            break format!("it did not answer within {} s", patience.as_secs());
        }
        pause();
    };
    stop(name, signal)?;
    bail!("could not start {name}: {failure}; the end of {}:\n{}", log(name).display(), tail(name));
}

/// Stops the server of this name, if it runs, and forgets it.
pub(super) fn stop(name: &str, signal: Signal) -> Result<Option<Record>> {
    let Some(record) = recorded(name)? else {
        return Ok(None);
    };
    let was_alive = record.is_alive();
    if was_alive {
        record.signal(signal)?;
        let begun = Instant::now();
        while record.is_alive() && begun.elapsed() < GRACE {
            pause();
        }
        if record.is_alive() {
            record.signal(Signal::KILL)?;
        }
    }
    std::fs::remove_file(record_path(name)).context("could not remove the record")?;
    Ok(was_alive.then_some(record))
}

/// A port of the loopback interface that nothing listens on.
pub(super) fn free(port: Port) -> Result<u16> {
    match port {
        Port::Exactly(port) if is_taken(port) => {
            bail!("something else listens on port {port}; choose another one with --port N")
        }
        Port::Exactly(port) => Ok(port),
        Port::Wished(port) if !is_taken(port) => Ok(port),
        Port::Wished(_) => {
            let any = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
            Ok(any.local_addr().context("no port is free")?.port())
        }
    }
}

/// The folder of records, logs and data.
pub(super) fn folder() -> Result<&'static Path> {
    std::fs::create_dir_all(FOLDER).with_context(|| format!("could not create {FOLDER}"))?;
    Ok(Path::new(FOLDER))
}

/// So that nobody else on this machine becomes the owner of the server.
pub(super) fn password() -> Result<String> {
    let mut bytes = [0; 16];
    let mut source = File::open("/dev/urandom").context("no random bytes")?;
    source.read_exact(&mut bytes).context("no random bytes")?;
    Ok(bytes.iter().map(|it| format!("{it:02x}")).collect())
}

/// Whether somebody accepts connections on this port of the loopback interface.
pub(super) fn accepts(port: u16) -> bool {
    connect(port).is_some()
}

/// Whether a GET of this path is answered with 200.
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

/// Whether a server cannot listen there.
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
        account.take(&mut process).current_dir(folder);
    }
    process
        .stdout(Stdio::from(log.try_clone().context("could not share the log")?))
        .stderr(Stdio::from(log))
        // So that the interrupt that ends a terminal's foreground command leaves it alone.
        .process_group(0)
        .spawn()
        .with_context(|| format!("could not start {program}"))
}

/// The command line of a process; none if there is no such process, or it has ended and nobody has asked how.
fn command_of(pid: u32) -> Option<String> {
    if let Ok(words) = std::fs::read(format!("/proc/{pid}/cmdline")) {
        let words = String::from_utf8_lossy(&words);
        return Some(words.trim_end_matches('\0').replace('\0', " "));
    }
    let ps = process::capture(&mut process::program(
        "ps",
        ["-ww", "-o", "args=", "-p", &pid.to_string()],
    ));
    ps.ok().map(|it| it.trim().to_owned())
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
