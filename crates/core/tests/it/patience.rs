//! A store behind a bad network, asked patiently, keeps the whole contract.

mod conformance {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use helix_agents_core::store::{PatientStore, Reach, StateStore};
    use helix_agents_store_memory::MemoryStore;
    use helix_agents_testkit::chaos::ChaosStore;
    use helix_agents_testkit::store_suite::StoreHarness;

    use crate::support::{Counting, NoWait};

    struct Harness {
        store: MemoryStore,
        /// Each handle has a bad day of its own.
        seeds: AtomicU64,
    }

    #[async_trait::async_trait]
    impl StoreHarness for Harness {
        fn reach(&self) -> Reach {
            Reach::Process
        }

        async fn open(&self) -> Arc<dyn StateStore> {
            let seed = self.seeds.fetch_add(1, Ordering::Relaxed);
            let chaos = Arc::new(ChaosStore::new(Arc::new(self.store.clone()), seed));
            let (clock, ids) = (Arc::<NoWait>::default(), Arc::<Counting>::default());
            Arc::new(PatientStore::new(chaos, clock, ids, Duration::from_secs(3600)))
        }
    }

    async fn harness() -> Harness {
        Harness { store: MemoryStore::new(), seeds: AtomicU64::new(1) }
    }

    helix_agents_testkit::store_suite!(harness);
}
