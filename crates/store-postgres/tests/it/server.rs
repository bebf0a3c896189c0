//! Dedicated servers for tests.

use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server in a temporary folder, which ends with the test. Local clients can log in as `postgres`
/// without a password.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    port: u16,
    process: Child,
}

impl Server {
    /// Starts a server with these settings, and with copies of these files in its data folder.
    pub(crate) fn with(settings: &[&str], files: &[&Path]) -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let folder = tempfile::tempdir().unwrap();
        give(folder.path(), 0o700);
        run(&mut program("initdb", folder.path()), |command| {
            command.args([
                "--username",
                "postgres",
                "--auth",
                "trust",
                "--no-sync",
                "--pgdata",
                "data",
            ])
        });
        for file in files {
            let copy = folder.path().join("data").join(file.file_name().unwrap());
            std::fs::copy(file, &copy).unwrap();
            give(&copy, 0o600);
        }
        let mut command = program("postgres", folder.path());
        command.args(["-D", "data", "-p", &port.to_string(), "-h", "127.0.0.1", "-k", ""]);
        for setting in settings {
            command.args(["-c", setting]);
        }
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log);
        let mut server = Self { process: command.spawn().unwrap(), folder, port };
        server.wait();
        server
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    #[expect(clippy::disallowed_methods, reason = "waits for another process")]
    fn wait(&mut self) {
        let started = Instant::now();
        let port = self.port.to_string();
        let mut ready = program("pg_isready", self.folder.path());
        ready.args(["--host", "127.0.0.1", "--port", &port]).stdout(Stdio::null());
        while !ready.status().unwrap().success() {
            let lives = self.process.try_wait().unwrap().is_none();
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap();
            let has_time = started.elapsed() < Duration::from_secs(60);
            assert!(lives && has_time, "did not start: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended already, if that made the test fail.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Returns the command of a PostgreSQL program in a folder. If this process is root, the command
/// runs as another user, because the program refuses to run as root.
fn program(name: &str, folder: &Path) -> Command {
    let mut command = Command::new(programs().join(name));
    command.current_dir(folder);
    if let Some((user, group)) = account() {
        command.uid(user).gid(group);
    }
    command
}

/// Returns the folder of the programs: from `PATH`, or the newest version in Debian's location.
fn programs() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let is_complete = |folder: &PathBuf| {
        ["initdb", "postgres", "pg_isready"].iter().all(|program| folder.join(program).is_file())
    };
    let in_path = std::env::split_paths(&path).find(is_complete);
    let installed = || {
        let versions = std::fs::read_dir("/usr/lib/postgresql").unwrap();
        let versions =
            versions.map(|version| version.unwrap().path().join("bin")).filter(is_complete);
        versions.max().unwrap()
    };
    in_path.unwrap_or_else(installed)
}

fn account() -> Option<(u32, u32)> {
    let number = |args: &[&str]| -> u32 {
        let output = Command::new("id").args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
    };
    (number(&["-u"]) == 0).then(|| (number(&["-u", "postgres"]), number(&["-g", "postgres"])))
}

/// Makes the server's user the only one with access to the path.
fn give(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    if let Some((user, group)) = account() {
        chown(path, Some(user), Some(group)).unwrap();
    }
}

fn run(command: &mut Command, with: impl FnOnce(&mut Command) -> &mut Command) {
    let output = with(command).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{stderr}");
}
