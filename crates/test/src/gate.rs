//! Synchronisation for tests: gates instead of sleeps, and a deadline around every wait.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// The time limit of every wait of a test.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A place where code under test waits until the test lets it continue.
///
/// A caller of [`pass`](Self::pass) waits until the gate is [open](Self::open). The test waits until a caller
/// has [reached](Self::reached) it. Clones are the same gate.
///
/// # Examples
///
/// ```
/// use helix_agents_test::Gate;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), tokio::task::JoinError> {
/// let gate = Gate::new();
/// let inside = gate.clone();
/// let task = tokio::spawn(async move { inside.pass().await });
/// gate.reached().await;
/// assert!(!task.is_finished());
/// gate.open();
/// task.await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    arrived: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            inner: Arc::new(Inner {
                arrived: watch::Sender::new(0),
                open: watch::Sender::new(false),
            }),
        }
    }
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An open gate.
    #[must_use]
    pub fn opened() -> Self {
        let gate = Self::new();
        gate.open();
        gate
    }

    /// Records an arrival, and returns once the gate is open.
    ///
    /// # Cancel safety
    /// Dropping the future ends the wait; the arrival stays counted.
    pub async fn pass(&self) {
        self.inner.arrived.send_modify(|arrived| *arrived += 1);
        let mut open = self.inner.open.subscribe();
        // An error means that the sender is gone; `self` holds it.
        drop(open.wait_for(|open| *open).await);
    }

    /// Returns once at least one caller has arrived, however long ago.
    ///
    /// # Panics
    /// After [`DEADLINE`].
    pub async fn reached(&self) {
        self.reached_by(1).await;
    }

    /// Returns once `count` callers have arrived in total.
    ///
    /// # Panics
    /// After [`DEADLINE`].
    pub async fn reached_by(&self, count: usize) {
        let mut arrived = self.inner.arrived.subscribe();
        drop(within(arrived.wait_for(|arrived| *arrived >= count)).await);
    }

    /// Returns the number of arrivals so far.
    #[must_use]
    pub fn arrived(&self) -> usize {
        *self.inner.arrived.borrow()
    }

    /// Lets all current and future callers pass.
    pub fn open(&self) {
        self.inner.open.send_replace(true);
    }
}

/// Returns the output of `future` if it completes before [`DEADLINE`].
///
/// # Panics
/// After the deadline, naming the caller.
#[track_caller]
pub fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        match tokio::time::timeout(DEADLINE, future).await {
            Ok(output) => output,
            Err(_) => panic!("still waiting after {DEADLINE:?} at {caller}"),
        }
    }
}

#[cfg(test)]
mod tests;
