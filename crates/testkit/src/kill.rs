//! Worker processes that are killed or stopped at a chosen fault point: real processes, real signals.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use helix_agents_core::fault;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process, pidfd_open, waitid,
};

/// At which fault point, counted from 1, a worker kills itself.
pub const KILL_AT: &str = "HELIX_KILL_AT";

/// At which fault point, counted from 1, a worker stops itself until it is continued.
pub const STOP_AT: &str = "HELIX_STOP_AT";

/// The file into which a worker writes the name of every fault point it passes.
pub const POINTS_FILE: &str = "HELIX_POINTS_FILE";

static PASSED: AtomicUsize = AtomicUsize::new(0);
static PLAN: OnceLock<Plan> = OnceLock::new();

#[derive(Debug)]
struct Plan {
    kill_at: Option<usize>,
    stop_at: Option<usize>,
    points: Option<PathBuf>,
}

/// Makes this process a worker, as its environment says. To be called first in `main`.
pub fn install_from_env() {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let points = std::env::var_os(POINTS_FILE).map(PathBuf::from);
    let plan = Plan { kill_at: number(KILL_AT), stop_at: number(STOP_AT), points };
    if PLAN.set(plan).is_ok() {
        fault::set_handler(pass);
    }
}

fn pass(name: &'static str) {
    let Some(plan) = PLAN.get() else { return };
    let passed = PASSED.fetch_add(1, Ordering::SeqCst) + 1;
    if let Some(points) = &plan.points {
        note(points, name);
    }
    if plan.kill_at == Some(passed) {
        // SIGKILL cannot be caught, so nothing is cleaned up and nothing is flushed.
        signal_self(Signal::KILL);
    }
    if plan.stop_at == Some(passed) {
        // SIGSTOP cannot be caught either. All threads stand still until SIGCONT arrives.
        await_other_threads();
        signal_self(Signal::STOP);
    }
}

/// Waits until the other threads of this process have nothing to do.
///
/// The writer thread of an SQLite store may be in the middle of a transaction. A process that stops
/// there holds the lock of the file, and no other process gets any further until it continues.
#[expect(clippy::disallowed_methods, reason = "the whole process is about to stand still")]
fn await_other_threads() {
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    let is_idle = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        tasks.flatten().filter(|task| task.file_name().to_str() != Some(&own)).all(|task| {
            // A thread that has ended meanwhile has no state any more.
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('S'))
        })
    };
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut idle = 0;
    // A thread that has just been woken still counts as sleeping for a moment.
    while idle < 3 && Instant::now() < deadline {
        idle = if is_idle() { idle + 1 } else { 0 };
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn signal_self(signal: Signal) {
    let sent = kill_process(getpid(), signal);
    assert!(sent.is_ok(), "the worker cannot send {signal:?} to itself: {sent:?}");
}

fn note(points: &Path, name: &str) {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new().create(true).append(true).open(points);
    let written = file.and_then(|mut file| file.write_all(format!("{name}\n").as_bytes()));
    assert!(written.is_ok(), "the points file cannot be written: {written:?}");
}

/// How a worker ended, and what it passed.
#[derive(Debug)]
pub struct WorkerEnd {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
    /// The fault points that it passed, in order.
    pub points: Vec<String>,
}

impl WorkerEnd {
    fn new(output: &Output, points: &Path) -> Self {
        let points = std::fs::read_to_string(points).unwrap_or_default();
        Self {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            points: points.lines().map(str::to_owned).collect(),
        }
    }

    /// Whether it was killed rather than ending by itself.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        use std::os::unix::process::ExitStatusExt as _;
        self.status.signal() == Some(9)
    }
}

/// Runs a worker to its end, killing it at the n-th fault point if it comes that far.
///
/// # Panics
/// If it cannot be started.
#[must_use]
pub fn run_worker(mut command: Command, scratch: &Path, kill_at: Option<usize>) -> WorkerEnd {
    let points = scratch.join("points");
    drop(std::fs::remove_file(&points));
    command.env(POINTS_FILE, &points).env_remove(STOP_AT).stdin(Stdio::null());
    match kill_at {
        Some(number) => command.env(KILL_AT, number.to_string()),
        None => command.env_remove(KILL_AT),
    };
    WorkerEnd::new(&command.output().unwrap(), &points)
}

/// When a worker is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopAt {
    /// At its n-th fault point, from 1.
    Point(usize),
    /// Some time after its n-th fault point, wherever it is by then.
    After {
        /// The number of the fault point.
        point: usize,
        /// How long after it.
        delay: Duration,
    },
}

/// A worker that stands still, unless it ended before it came that far.
///
/// Dropping it kills the worker.
#[derive(Debug)]
pub struct StoppedWorker {
    child: Option<Child>,
    points: PathBuf,
}

impl StoppedWorker {
    /// Starts a worker and returns when it stands still, or has ended. `name` keeps its list of points apart
    /// from that of other workers in the same scratch folder.
    ///
    /// A worker that holds the write lock of an SQLite file moves on until it does not: no other process could
    /// write before it continues.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(mut command: Command, scratch: &Path, name: &str, stop_at: StopAt) -> Self {
        let points = scratch.join(format!("points-{name}"));
        drop(std::fs::remove_file(&points));
        command.env(POINTS_FILE, &points).env_remove(STOP_AT).env_remove(KILL_AT);
        if let StopAt::Point(point) = stop_at {
            command.env(STOP_AT, point.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let worker = Self { child: Some(command.spawn().unwrap()), points };
        if let StopAt::After { point, delay } = stop_at {
            worker.passes(point);
            pause(delay);
            worker.stop();
        }
        worker.wait(WaitIdOptions::STOPPED | WaitIdOptions::EXITED);
        while holds_lock(worker.pid()) {
            worker.wake();
            pause(Duration::from_millis(1));
            worker.stop();
            worker.wait(WaitIdOptions::STOPPED | WaitIdOptions::EXITED);
        }
        worker
    }

    /// Waits until it has passed so many fault points, or has ended.
    fn passes(&self, points: usize) {
        let passed = || std::fs::read_to_string(&self.points).unwrap_or_default().lines().count();
        while passed() < points && !self.ends_within(Duration::from_millis(1)) {}
    }

    fn stop(&self) {
        let sent = kill_process(self.pid(), Signal::STOP);
        assert!(sent.is_ok(), "the worker cannot be stopped: {sent:?}");
    }

    /// Lets it continue, if it stands still.
    pub fn wake(&self) {
        // One that ended before its stop is not reaped yet, so the signal reaches no other process.
        let sent = kill_process(self.pid(), Signal::CONT);
        assert!(sent.is_ok(), "the worker cannot be continued: {sent:?}");
    }

    /// Waits until it has ended, but no longer than `limit`. Returns `true` if it has.
    #[must_use]
    pub fn ends_within(&self, limit: Duration) -> bool {
        // The descriptor of a process becomes readable when the process ends.
        let process = pidfd_open(self.pid(), PidfdFlags::empty()).unwrap();
        let limit = Timespec::try_from(limit).unwrap();
        let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)).unwrap();
        ended > 0
    }

    /// Waits for the end of a worker that was [continued](Self::wake).
    ///
    /// # Panics
    /// If its output cannot be read.
    #[must_use]
    pub fn end(mut self) -> WorkerEnd {
        let child = self.child.take().unwrap();
        WorkerEnd::new(&child.wait_with_output().unwrap(), &self.points)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().unwrap())
    }

    /// Waits for a change of its state and leaves it to be reaped.
    fn wait(&self, options: WaitIdOptions) {
        let found = waitid(WaitId::Pid(self.pid()), options | WaitIdOptions::NOWAIT);
        assert!(found.is_ok(), "the worker cannot be waited for: {found:?}");
    }
}

/// Lets time pass for another process.
#[expect(clippy::disallowed_methods, reason = "a moment in another process is what is wanted")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Returns `true` if a process holds an exclusive lock of a file, as SQLite does during a write.
///
/// The lists of one process that stands still do not change while they are read, unlike `/proc/locks`.
fn holds_lock(pid: Pid) -> bool {
    let files = format!("/proc/{}/fdinfo", pid.as_raw_nonzero());
    // One that has ended has no files.
    let Ok(files) = std::fs::read_dir(files) else { return false };
    let locks =
        files.flatten().map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
    locks.into_iter().any(|locks| locks.lines().any(is_write_lock))
}

/// A line reads `lock: 1: POSIX ADVISORY WRITE 4711 fe:00:12 0 EOF`.
fn is_write_lock(line: &str) -> bool {
    let fields: Vec<_> = line.split_whitespace().collect();
    matches!(fields[..], ["lock:", _, "POSIX", _, "WRITE", ..])
}

impl Drop for StoppedWorker {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
