//! Servers that only one test uses, so that it can crash them.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use helix_agents_testkit::servers::temporal_command;
use rustix::process::{Pid, Signal, kill_process};

/// The folder of PostgreSQL's programs on Debian, which is not in `PATH`.
const DEBIAN: &str = "/usr/lib/postgresql";

/// A server in its own folder, which stops with the test.
pub(super) struct Server {
    pub(super) url: String,
    port: u16,
    command: Vec<String>,
    /// The user and group that it runs as, if not the current ones.
    account: Option<(u32, u32)>,
    /// The signal that simulates a crash.
    crash: Signal,
    /// The command that succeeds when the server is ready. Without it the server is ready when it accepts connections.
    ready: Option<Vec<String>>,
    process: Option<Child>,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts PostgreSQL with its default durability settings. A crash is an immediate shutdown: killing only its first
    /// process would leave the others running. All of its processes stop without a checkpoint, and the next start
    /// recovers.
    pub(super) fn postgres() -> Self {
        let (folder, port, programs) = (tempfile::tempdir().unwrap(), free_port(), programs());
        let account = unprivileged();
        if let Some((user, group)) = account {
            chown(folder.path(), Some(user), Some(group)).unwrap();
        }
        let data = text(&folder.path().join("data"));
        let program = |name: &str| text(&programs.join(name));
        let words = ["--username", "helix", "--auth", "trust", "--locale", "C", "--no-sync", &data];
        let mut initdb = Command::new(program("initdb"));
        let created = become_account(initdb.args(words), account)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        let (number, host) = (port.to_string(), "127.0.0.1");
        let settings = ["listen_addresses=127.0.0.1", "unix_socket_directories="];
        let mut command = vec![program("postgres"), "-D".to_owned(), data, "-p".to_owned()];
        command.push(number.clone());
        command
            .extend(settings.iter().flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]));
        let ready = [&program("pg_isready"), "--host", host, "--port", &number];
        Self {
            url: format!("postgres://helix@127.0.0.1:{port}/postgres"),
            port,
            command,
            account,
            crash: Signal::QUIT,
            ready: Some(ready.map(str::to_owned).into()),
            process: None,
            folder,
        }
        .started()
    }

    /// Starts Redis with its strongest durability settings.
    pub(super) fn redis() -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let (number, place) = (port.to_string(), text(folder.path()));
        let words = ["redis-server", "--port", &number, "--bind", "127.0.0.1", "--dir", &place];
        let durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"];
        Self {
            url: format!("redis://127.0.0.1:{port}"),
            port,
            command: words.into_iter().chain(durable).map(str::to_owned).collect(),
            account: None,
            crash: Signal::KILL,
            ready: None,
            process: None,
            folder,
        }
        .started()
    }

    /// Starts Temporal's development server with a database file.
    pub(super) fn temporal() -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let command = temporal_command(port, &text(&folder.path().join("temporal.db")));
        let address = format!("127.0.0.1:{port}");
        let ready = [&command[0], "operator", "cluster", "health", "--address", &address];
        Self {
            url: format!("http://{address}"),
            port,
            account: None,
            crash: Signal::KILL,
            ready: Some(ready.map(str::to_owned).into()),
            command,
            process: None,
            folder,
        }
        .started()
    }

    fn started(mut self) -> Self {
        self.restart();
        self
    }

    /// Stops the server as a crash would.
    pub(super) fn crash(&mut self) {
        if let Some(mut process) = self.process.take() {
            kill_process(Pid::from_child(&process), self.crash).unwrap();
            process.wait().unwrap();
        }
    }

    /// Restarts the server on its data, with the same port.
    #[expect(
        clippy::disallowed_methods,
        reason = "another process, which does not report that it is ready"
    )]
    pub(super) fn restart(&mut self) {
        let (program, words) = self.command.split_first().unwrap();
        let mut server = Command::new(program);
        become_account(server.args(words), self.account)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.process = Some(server.spawn().unwrap());
        let started = Instant::now();
        while !self.is_ready() {
            assert!(started.elapsed() < Duration::from_secs(60), "{program} did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn is_ready(&self) -> bool {
        let Some((program, words)) = self.ready.as_ref().and_then(|command| command.split_first())
        else {
            return TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok();
        };
        Command::new(program).args(words).output().unwrap().status.success()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}

fn free_port() -> u16 {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    free.local_addr().unwrap().port()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Returns the folder of PostgreSQL's programs, of the newest installed version.
fn programs() -> PathBuf {
    let programs = ["initdb", "postgres", "pg_isready"];
    let has = |folder: &PathBuf| programs.iter().all(|program| folder.join(program).is_file());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let debian = std::fs::read_dir(DEBIAN).into_iter().flatten().flatten();
    let number = |folder: &PathBuf| folder.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = debian.map(|entry| entry.path().join("bin")).filter(has).max_by_key(number);
    let found = std::env::split_paths(&path).find(has).or(newest);
    found.expect("PostgreSQL's initdb is missing; `cargo xtask servers up` installs it")
}

/// Returns a user without special permissions if the current user is root, because PostgreSQL does not run as root.
fn unprivileged() -> Option<(u32, u32)> {
    let id = |words: &[&str]| {
        let output = Command::new("id").args(words).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().ok()
    };
    (id(&["-u"]) == Some(0)).then(|| {
        let account = |name: &str| Some((id(&["-u", name])?, id(&["-g", name])?));
        account("postgres").or_else(|| account("nobody")).expect("a user who is not root")
    })
}

fn become_account(command: &mut Command, account: Option<(u32, u32)>) -> &mut Command {
    match account {
        Some((user, group)) => command.uid(user).gid(group),
        None => command,
    }
}
