//! A process that outlives us, and the record by which it is found again.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::process;

const FOLDER: &str = "target/servers";

/// How long a process may take to go before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// What is needed to find a server again. The command tells it from a later process with the same number.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub pid: u32,
    pub port: u16,
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

/// Starts a server in a process group of its own and returns once it answers.
///
/// # Errors
///
/// If it ends, or does not answer in time; it is stopped then, and the end of its log is in the message.
pub(super) fn start(
    name: &str,
    port: u16,
    command: &[String],
    path: &str,
    patience: Duration,
) -> Result<Record> {
    std::fs::create_dir_all(FOLDER).with_context(|| format!("could not create {FOLDER}"))?;
    let mut child = spawn(name, command)?;
    let record = Record { pid: child.id(), port, command: command.to_vec() };
    let json = serde_json::to_string_pretty(&record).context("could not encode the record")?;
    std::fs::write(record_path(name), json + "\n").context("could not write the record")?;

    let begun = Instant::now();
    let failure = loop {
        if answers(port, path) {
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
    stop(name)?;
    bail!("could not start {name}: {failure}; the end of {}:\n{}", log(name).display(), tail(name));
}

/// Stops the server of this name, if it runs, and forgets it.
pub(super) fn stop(name: &str) -> Result<Option<Record>> {
    let Some(record) = recorded(name)? else {
        return Ok(None);
    };
    let was_alive = record.is_alive();
    if was_alive {
        record.signal(Signal::TERM)?;
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

/// Whether anything listens on this port of the loopback interface.
pub(super) fn is_taken(port: u16) -> bool {
    connect(port).is_some()
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

fn spawn(name: &str, command: &[String]) -> Result<Child> {
    let (program, args) = command.split_first().context("an empty command")?;
    let log = File::create(log(name)).context("could not create the log")?;
    process::program(program, args)
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

/// Whether a GET of this path is answered with 200.
fn answers(port: u16, path: &str) -> bool {
    let ask = || {
        let mut stream = connect(port)?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).ok()?;
        Some(status.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
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
