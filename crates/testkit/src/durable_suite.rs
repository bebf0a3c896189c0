//! What was acknowledged is there after the writer was killed, as tests: real processes, real SIGKILL.
//!
//! A scenario starts the test binary again as a writer. The writer reports each operation on a pipe,
//! before it asks the store and after the store has answered. So the record of what was acknowledged
//! is outside of the store. The scenario kills the writer after a random report, opens the store, and
//! compares.
//!
//! SIGKILL cannot show a write that was never forced to the disk, because the kernel still has it.
//! [`forced writes`](acknowledged_writes_were_forced_to_the_disk) are counted instead, for stores that
//! write files in their own process.
//!
//! A store crate writes a [`DurableHarness`] and expands [`durable_suite!`](crate::durable_suite!) in
//! `mod durable` of its `tests/it/main.rs`.

mod journal;
mod parent;
mod writer;

use std::sync::Arc;

use async_trait::async_trait;

use helix_agents_core::store::StateStore;

pub use parent::{
    acknowledged_operations_survive_sigkill, acknowledged_writes_were_forced_to_the_disk,
};
pub use writer::write;

/// How the suite gets at one back end that outlives its processes.
#[async_trait]
pub trait DurableHarness: Send + Sync + 'static {
    /// Opens the store at that place.
    async fn open(place: &str) -> Arc<dyn StateStore>;

    /// Where this harness keeps its data: what another process opens the store by, as a path or a URL.
    fn place(&self) -> String;

    /// Whether the store forces its writes to the disk in the process that uses it, by `fsync` or
    /// `fdatasync`. Not so where a server does it.
    fn forces_writes(&self) -> bool;
}

/// Expands to one `#[test]` per scenario, and one that is the writer. `$harness` is the path of an
/// async function that makes a fresh harness of the type `$type`.
#[macro_export]
macro_rules! durable_suite {
    ($harness:path, $type:ty) => {
        /// What the other process does. In a plain run of the tests, nothing.
        #[test]
        fn writer() {
            $crate::durable_suite::write::<$type>();
        }

        #[test]
        fn acknowledged_operations_survive_sigkill() {
            $crate::scenario::run("acknowledged_operations_survive_sigkill", async || {
                let writer = concat!(module_path!(), "::writer");
                let harness = $harness().await;
                $crate::durable_suite::acknowledged_operations_survive_sigkill(&harness, writer)
                    .await;
            });
        }

        #[test]
        fn acknowledged_writes_were_forced_to_the_disk() {
            $crate::scenario::run("acknowledged_writes_were_forced_to_the_disk", async || {
                let writer = concat!(module_path!(), "::writer");
                let harness = $harness().await;
                $crate::durable_suite::acknowledged_writes_were_forced_to_the_disk(
                    &harness, writer,
                )
                .await;
            });
        }
    };
}
