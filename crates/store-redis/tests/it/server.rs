//! Servers that a test has to itself, to treat them badly.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::support::Corner;

/// A server in a folder of its own, which ends with the test.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    port: u16,
    settings: Vec<String>,
    process: Option<Child>,
}

impl Server {
    /// As durable as it gets.
    pub(crate) fn start() -> Self {
        Self::with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    pub(crate) fn with(settings: &[&str]) -> Self {
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self {
            folder,
            port,
            settings: settings.iter().map(|it| (*it).to_owned()).collect(),
            process: None,
        };
        server.go_on();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn corner(&self) -> Corner {
        Corner::at(&self.url())
    }

    /// Makes it stand still, as if its machine were too busy for it.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn unpause(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(self.process.as_ref().unwrap());
        kill_process(pid, signal).unwrap();
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts it on what it has kept.
    #[expect(
        clippy::disallowed_methods,
        reason = "another process, which tells nobody that it is ready"
    )]
    pub(crate) fn go_on(&mut self) {
        let (port, folder) = (self.port.to_string(), self.folder.path().to_str().unwrap());
        let process = Command::new("redis-server")
            .args(["--port", &port, "--bind", "127.0.0.1", "--dir", folder, "--save", ""])
            // A replica need not wait for others to come.
            .args(["--repl-diskless-sync-delay", "0"])
            .args(&self.settings)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.process = Some(process);
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(20), "redis-server did not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn appended(&self) -> PathBuf {
        self.folder.path().join("appendonlydir")
    }

    /// What is on the disk now.
    pub(crate) fn copy(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_files(&self.appended(), copy.path());
        copy
    }

    /// Puts back what was on the disk when it was copied; the server is down meanwhile.
    pub(crate) fn put_back(&mut self, copy: &tempfile::TempDir) {
        self.kill();
        std::fs::remove_dir_all(self.appended()).unwrap();
        std::fs::create_dir(self.appended()).unwrap();
        copy_files(copy.path(), &self.appended());
        self.go_on();
    }

    /// Cuts so many bytes off what is on the disk, as a crash in the middle of writing does.
    pub(crate) fn cut(&mut self, bytes: u64) {
        self.kill();
        let is_log = |path: &PathBuf| path.to_string_lossy().ends_with(".incr.aof");
        let mut files = files(&self.appended());
        let log = files.find(is_log).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(log).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length - bytes).unwrap();
        self.go_on();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// One on which nothing listens, and neither where a node of a cluster talks to the others: so much higher.
pub(crate) fn free_port() -> u16 {
    const BUS: u16 = 10_000;
    let free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok();
    loop {
        let listener = free(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        if port.checked_add(BUS).and_then(free).is_some() {
            return port;
        }
    }
}

fn files(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path())
}

fn copy_files(from: &Path, to: &Path) {
    for file in files(from) {
        std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}
