//! Dedicated servers for tests that kill, pause or damage them.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::support::Keyspace;

/// A server in a temporary folder, which ends with the test.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    port: u16,
    settings: Vec<String>,
    process: Option<Child>,
}

impl Server {
    /// Starts a server with the most durable settings.
    pub(crate) fn start() -> Self {
        Self::with(&["--appendonly", "yes", "--appendfsync", "always"])
    }

    pub(crate) fn with(settings: &[&str]) -> Self {
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        let mut server = Self {
            folder,
            port,
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            process: None,
        };
        server.launch();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn keyspace(&self) -> Keyspace {
        Keyspace::at(&self.url())
    }

    /// Pauses the process, as if its machine were overloaded.
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

    /// Kills the process, like a crash.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts the process with the data of the previous one.
    #[expect(
        clippy::disallowed_methods,
        reason = "waits for another process, which does not signal that it is ready"
    )]
    pub(crate) fn launch(&mut self) {
        let (port, folder) = (self.port.to_string(), self.folder.path().to_str().unwrap());
        let process = Command::new("redis-server")
            .args(["--port", &port, "--bind", "127.0.0.1", "--dir", folder, "--save", ""])
            // Synchronize a replica immediately instead of waiting for others.
            .args(["--repl-diskless-sync-delay", "0"])
            .args(&self.settings)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.process = Some(process);
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(started.elapsed() < Duration::from_secs(20), "redis-server did not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn appended(&self) -> PathBuf {
        self.folder.path().join("appendonlydir")
    }

    /// Copies the current files.
    pub(crate) fn copy(&self) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_files(&self.appended(), copy.path());
        copy
    }

    /// Restores copied files while the server is stopped.
    pub(crate) fn restore(&mut self, copy: &tempfile::TempDir) {
        self.kill();
        std::fs::remove_dir_all(self.appended()).unwrap();
        std::fs::create_dir(self.appended()).unwrap();
        copy_files(copy.path(), &self.appended());
        self.launch();
    }

    /// Truncates the append-only file by this many bytes, like a crash during a write.
    pub(crate) fn cut(&mut self, bytes: u64) {
        self.kill();
        let is_log = |path: &PathBuf| path.to_string_lossy().ends_with(".incr.aof");
        let mut files = files(&self.appended());
        let log = files.find(is_log).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(log).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length - bytes).unwrap();
        self.launch();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a free port whose cluster bus port, 10,000 higher, is free, too.
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
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
}

fn copy_files(from: &Path, to: &Path) {
    for file in files(from) {
        std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}
