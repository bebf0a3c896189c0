//! Worker processes that are killed or stopped at a chosen fault point, with real processes and real signals.

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

/// The environment variable with the number, from 1, of the fault point at which a worker kills itself.
pub const KILL_AT: &str = "HELIX_KILL_AT";

/// The environment variable with the number, from 1, of the fault point at which a worker stops itself until
/// it is continued.
pub const STOP_AT: &str = "HELIX_STOP_AT";

/// The environment variable with the file into which a worker writes the name of every fault point that it
/// passes.
pub const POINTS_FILE: &str = "HELIX_POINTS_FILE";

static PASSED: AtomicUsize = AtomicUsize::new(0);
static PLAN: OnceLock<Plan> = OnceLock::new();

#[derive(Debug)]
struct Plan {
    kill_at: Option<usize>,
    stop_at: Option<usize>,
    points: Option<PathBuf>,
}

/// Makes this process a worker as its environment specifies. Call it first in `main`.
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
        // SIGSTOP cannot be caught either. All threads stop until SIGCONT arrives.
        await_other_threads();
        signal_self(Signal::STOP);
    }
}

/// Waits until the other threads of this process are idle.
///
/// The writer thread of an SQLite store may be in the middle of a transaction. A process that stops there
/// holds the file lock, and blocks all other processes until it continues.
#[expect(clippy::disallowed_methods, reason = "the whole process is about to stop")]
fn await_other_threads() {
    let own = rustix::thread::gettid().as_raw_nonzero().to_string();
    let is_idle = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        tasks.flatten().filter(|task| task.file_name().to_str() != Some(&own)).all(|task| {
            // A thread that has ended meanwhile has no state.
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('S'))
        })
    };
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut idle = 0;
    // A thread that was just woken counts as sleeping for a moment.
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

/// The result of a worker that ended.
#[derive(Debug)]
pub struct WorkerEnd {
    /// The exit status of the worker.
    pub status: ExitStatus,
    /// The standard output of the worker.
    pub stdout: String,
    /// The standard error of the worker.
    pub stderr: String,
    /// The fault points that the worker passed, in order.
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

    /// Returns `true` if the worker was killed rather than ending by itself.
    #[must_use]
    pub fn was_killed(&self) -> bool {
        use std::os::unix::process::ExitStatusExt as _;
        self.status.signal() == Some(9)
    }
}

/// Runs a worker to its end, and kills it at the given fault point if it gets that far.
///
/// # Panics
/// If the worker cannot be started.
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

/// The moment at which a worker is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopAt {
    /// The fault point with this number, from 1.
    Point(usize),
    /// Some time after a fault point, wherever the worker is by then.
    After {
        /// The number of the fault point, from 1.
        point: usize,
        /// The time after that fault point.
        delay: Duration,
    },
}

/// A worker that is stopped, unless it ended earlier.
///
/// Dropping it kills the worker.
#[derive(Debug)]
pub struct StoppedWorker {
    child: Option<Child>,
    points: PathBuf,
}

impl StoppedWorker {
    /// Starts a worker and returns when it has stopped or ended. `name` distinguishes its list of points from
    /// those of other workers in the same scratch folder.
    ///
    /// A worker that holds the write lock of an SQLite file runs until it has released the lock. Otherwise no
    /// other process could write before it continues.
    ///
    /// # Panics
    /// If the worker cannot be started.
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

    /// Waits until the worker has passed that many fault points, or has ended.
    fn passes(&self, points: usize) {
        let passed = || std::fs::read_to_string(&self.points).unwrap_or_default().lines().count();
        while passed() < points && !self.ends_within(Duration::from_millis(1)) {}
    }

    fn stop(&self) {
        let sent = kill_process(self.pid(), Signal::STOP);
        assert!(sent.is_ok(), "the worker cannot be stopped: {sent:?}");
    }

    /// Lets the worker continue if it is stopped.
    pub fn wake(&self) {
        // A worker that ended before its stop is not reaped yet, so the signal reaches no other process.
        let sent = kill_process(self.pid(), Signal::CONT);
        assert!(sent.is_ok(), "the worker cannot be continued: {sent:?}");
    }

    /// Waits until the worker has ended, but no longer than `limit`. Returns `true` if it has ended.
    #[must_use]
    pub fn ends_within(&self, limit: Duration) -> bool {
        // A process descriptor becomes readable when the process ends.
        let process = pidfd_open(self.pid(), PidfdFlags::empty()).unwrap();
        let limit = Timespec::try_from(limit).unwrap();
        let ended = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&limit)).unwrap();
        ended > 0
    }

    /// Waits for the end of a worker that was [continued](Self::wake), and returns its result.
    ///
    /// # Panics
    /// If the output of the worker cannot be read.
    #[must_use]
    pub fn end(mut self) -> WorkerEnd {
        let child = self.child.take().unwrap();
        WorkerEnd::new(&child.wait_with_output().unwrap(), &self.points)
    }

    fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().unwrap())
    }

    /// Waits for a state change of the worker, and leaves it to be reaped.
    fn wait(&self, options: WaitIdOptions) {
        let found = waitid(WaitId::Pid(self.pid()), options | WaitIdOptions::NOWAIT);
        assert!(found.is_ok(), "the worker cannot be waited for: {found:?}");
    }
}

/// Blocks this thread while another process runs.
#[expect(clippy::disallowed_methods, reason = "it waits for another process")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Returns `true` if the process holds an exclusive file lock, as SQLite does during a write.
///
/// The lists of a stopped process do not change while they are read, unlike `/proc/locks`.
fn holds_lock(pid: Pid) -> bool {
    let files = format!("/proc/{}/fdinfo", pid.as_raw_nonzero());
    // A process that has ended has no files.
    let Ok(files) = std::fs::read_dir(files) else { return false };
    let locks =
        files.flatten().map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
    locks.into_iter().any(|locks| locks.lines().any(is_write_lock))
}

/// Returns `true` for a line such as `lock: 1: POSIX ADVISORY WRITE 4711 fe:00:12 0 EOF`.
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
