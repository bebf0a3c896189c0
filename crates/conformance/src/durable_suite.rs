//! Conformance tests for durability: acknowledged data is still there after the writer process has been
//! killed, with real processes and real SIGKILL.
//!
//! A scenario starts the test binary again as a writer. The writer reports each operation on a pipe, before
//! it calls the store and after the store has replied. So the record of acknowledged operations is outside
//! the store. The scenario kills the writer after a random report, opens the store, and compares.
//!
//! SIGKILL cannot reveal a write that was never forced to disk, because the kernel still has it. For stores
//! that write files in their own process, [`forced writes`](acknowledged_writes_were_forced_to_the_disk) are
//! counted instead.
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

/// A backend whose data outlives its processes.
#[async_trait]
pub trait DurableHarness: Send + Sync + 'static {
    /// Opens the store at a place.
    async fn open(place: &str) -> Arc<dyn StateStore>;

    /// Returns the place of the data, such as a path or a URL, with which another process opens the store.
    fn place(&self) -> String;

    /// Returns `true` if the store forces its writes to disk in the process that uses it, with `fsync` or
    /// `fdatasync`. Returns `false` if a server does it. If `true`, the suite counts these calls; this needs
    /// Linux and a C compiler named `cc`.
    fn forces_writes(&self) -> bool;
}

/// Expands to one `#[test]` per scenario, and one that is the writer. `$harness` is the path of an async
/// function that creates a fresh harness of the type `$type`.
///
/// # Examples
///
/// The suite for a store of one file, `FileStore`:
///
/// ```
/// # use std::sync::Arc;
/// # use helix_agents_core::store::StateStore;
/// # use helix_agents_store_memory::MemoryStore;
/// # use helix_agents_conformance::durable_suite::DurableHarness;
/// # struct FileStore;
/// # impl FileStore {
/// #     async fn open(_path: &str) -> MemoryStore { MemoryStore::new() }
/// # }
/// struct Harness(tempfile::NamedTempFile);
///
/// #[async_trait::async_trait]
/// impl DurableHarness for Harness {
///     async fn open(place: &str) -> Arc<dyn StateStore> {
///         Arc::new(FileStore::open(place).await)
///     }
///
///     fn place(&self) -> String { self.0.path().display().to_string() }
///
///     fn forces_writes(&self) -> bool { true }
/// }
///
/// async fn harness() -> Harness { Harness(tempfile::NamedTempFile::new().unwrap()) }
///
/// helix_agents_conformance::durable_suite!(harness, Harness);
/// ```
#[macro_export]
macro_rules! durable_suite {
    ($harness:path, $type:ty) => {
        /// The entry point of the writer process. It does nothing in a plain test run.
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
