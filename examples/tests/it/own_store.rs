//! Runs the contract suites against the store, kills writers, and runs an agent on it.

mod damage;
mod durable;
mod program;

mod conformance {
    use std::sync::Arc;

    use helix_agents::store::{StateStore, StoreScope};
    use helix_agents_conformance::store_suite::StoreHarness;
    use helix_agents_examples::own_store::FileStore;
    use tempfile::TempDir;

    /// Opens the file anew for each handle, like another process.
    struct Harness(TempDir);

    #[async_trait::async_trait]
    impl StoreHarness for Harness {
        fn scope(&self) -> StoreScope {
            StoreScope::Machine
        }

        async fn open(&self) -> Arc<dyn StateStore> {
            Arc::new(FileStore::open(self.0.path().join("sessions.log")).await.unwrap())
        }

        // Snapshots are optional. Without them, the first read of a session reads its whole log.
        fn keeps_snapshots(&self) -> bool {
            false
        }
    }

    async fn harness() -> Harness {
        Harness(tempfile::tempdir().unwrap())
    }

    helix_agents_conformance::store_suite!(harness);
}

mod stream {
    use std::sync::Arc;

    use helix_agents::store_memory::MemoryOptions;
    use helix_agents::stream::StreamManager;
    use helix_agents_conformance::stream_suite::StreamHarness;
    use helix_agents_examples::own_store::FileStore;
    use tempfile::TempDir;

    struct Harness {
        folder: TempDir,
        store: FileStore,
    }

    #[async_trait::async_trait]
    impl StreamHarness for Harness {
        async fn open(&self) -> Arc<dyn StreamManager> {
            Arc::new(self.store.clone())
        }

        async fn open_keeping(&self, chunks: u64) -> Arc<dyn StreamManager> {
            let options = MemoryOptions::new().stream_retention(chunks);
            let path = self.folder.path().join("keeping.log");
            Arc::new(FileStore::open_keeping(path, options).await.unwrap())
        }
    }

    async fn harness() -> Harness {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path().join("sessions.log")).await.unwrap();
        Harness { folder, store }
    }

    helix_agents_conformance::stream_suite!(harness);
}

mod backend {
    use helix_agents_conformance::backend_suite::{Backend, BackendHarness};
    use helix_agents_examples::own_store::FileStore;
    use tempfile::TempDir;

    /// All handles share one open file, because streams only exist there.
    struct Harness {
        store: FileStore,
        _folder: TempDir,
    }

    #[async_trait::async_trait]
    impl BackendHarness for Harness {
        async fn open(&self) -> Backend {
            Backend::of(self.store.clone())
        }
    }

    async fn harness() -> Harness {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path().join("sessions.log")).await.unwrap();
        Harness { store, _folder: folder }
    }

    helix_agents_conformance::backend_suite!(harness);
}
