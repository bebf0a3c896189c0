//! The writer process, which the parent kills.

use std::io::Write as _;
use std::sync::Arc;

use helix_agents_core::store::{Position, StateStore};

use super::DurableHarness;
use super::journal::{MARK, Operation, Report};
use crate::rng::Rng;

/// The environment variable with the place of the store. Only a writer process has it.
pub(super) const PLACE: &str = "HELIX_WRITER_PLACE";

/// The environment variable that distinguishes the sessions of this writer from those of others.
pub(super) const NAME: &str = "HELIX_WRITER_NAME";

/// The environment variable with the number of concurrent tasks.
pub(super) const TASKS: &str = "HELIX_WRITER_TASKS";

/// The environment variable with the file that counts forced writes.
pub(super) const FORCED: &str = "HELIX_FORCED_WRITES";

/// Writes forever if this process was started as a writer. Returns at once otherwise.
///
/// # Panics
/// If the store cannot be opened or written.
pub fn write<H: DurableHarness>() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let name = std::env::var(NAME).unwrap();
    let tasks: usize = std::env::var(TASKS).unwrap().parse().unwrap();
    let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    executor.block_on(async {
        let store = H::open(&place).await;
        let tasks = (0..tasks).map(|task| Task::new(task, &name, Arc::clone(&store)).run());
        // A failed task ends the process, which the parent notices.
        futures_util::future::try_join_all(tasks.map(tokio::spawn)).await.unwrap();
    });
}

struct Task {
    task: usize,
    name: String,
    rng: Rng,
    store: Arc<dyn StateStore>,
}

impl Task {
    fn new(task: usize, name: &str, store: Arc<dyn StateStore>) -> Self {
        Self { task, name: name.to_owned(), rng: Rng::of((name, task)), store }
    }

    async fn run(mut self) {
        for number in 0.. {
            self.session(&format!("{}/{}/{number}", self.name, self.task)).await;
        }
    }

    /// Creates a session, appends to it, and sometimes forks or deletes it.
    async fn session(&mut self, session: &str) {
        let session = session.to_owned();
        self.perform(Operation::Create { session: session.clone() }).await;
        let mut position = Position { version: 1, append: "first".into() };
        for number in 0..self.rng.below(8) {
            let count = u32::try_from(1 + self.rng.below(4)).unwrap();
            let id = format!("{session}:{number}");
            let (expected, session) = (position.clone(), session.clone());
            self.perform(Operation::Append { session, expected, id: id.clone(), count }).await;
            let version = position.version + u64::from(count);
            position = Position { version, append: id.into() };
        }
        if self.rng.once_in(3) {
            let (from, session) = (session.clone(), format!("{session}/fork"));
            self.perform(Operation::Fork { from, session, expected: position }).await;
        }
        if self.rng.once_in(3) {
            self.perform(Operation::Delete { session }).await;
        }
    }

    async fn perform(&self, operation: Operation) {
        let before = forced();
        self.report(operation.clone(), false, None);
        operation.execute(&*self.store).await;
        let since = before.zip(forced()).map(|(before, now)| now - before);
        self.report(operation, true, since);
    }

    /// Writes a line to the pipe at once. So the parent has every report, however this process ends.
    fn report(&self, operation: Operation, is_done: bool, forced: Option<u64>) {
        let report = Report { task: self.task, operation, is_done, forced };
        let json = serde_json::to_string(&report).unwrap();
        // Fails if the parent has ended.
        let mut pipe = std::io::stdout().lock();
        pipe.write_all(format!("\n{MARK}{json}\n").as_bytes()).unwrap();
        pipe.flush().unwrap();
    }
}

/// Returns the number of forced writes of this process, if they are counted.
fn forced() -> Option<u64> {
    let file = std::env::var_os(FORCED)?;
    // The file does not exist before the first forced write.
    Some(std::fs::metadata(file).map_or(0, |file| file.len()))
}
