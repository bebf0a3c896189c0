//! The parity suite, on stores that processes share.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_conformance::runtime_suite::processes::{
    Boot, ProcessConfig, Processes, StartedProcess,
};
use helix_agents_core::id::SessionId;
use helix_agents_runtime_temporal::RuntimeBuilder as _;
use helix_agents_runtime_temporal::{TemporalRuntime, TemporalWorker};
use helix_agents_testkit::servers;

use crate::records::histories;

const LEAST_LEASE: Duration = Duration::from_secs(3);

type Harness<S> = Processes<S, Temporal>;

struct Temporal {
    /// The prefix of the workflow ids of this harness. Other harnesses use the same sessions.
    prefix: String,
}

impl Temporal {
    fn new() -> Self {
        Self { prefix: servers::unique() }
    }
}

#[async_trait]
impl Boot for Temporal {
    async fn boot(&self, with: ProcessConfig) -> StartedProcess {
        let ProcessConfig { world, store, streams, tasks_on } = with;
        let builder = TemporalRuntime::builder()
            .state_store(store)
            .stream_manager(streams)
            .llm_adapter(world.llm)
            .registry(world.registry)
            // Each part takes a way over the server: on a busy machine a lease has to outlast that.
            .lease(world.lease.max(LEAST_LEASE))
            .grace(world.grace)
            .auto_resume(world.auto_resume)
            .observers(world.observers)
            .tasks_on(tasks_on.clone())
            .target(servers::temporal())
            .task_queue(servers::unique())
            .own_queue(true)
            .prefix(&*self.prefix)
            // What goes wrong is to be seen, and not to be tried until it is right.
            .attempts(1);
        let begin = async {
            let runtime = builder.connect().await.unwrap();
            let worker = TemporalWorker::builder(&runtime).start().await.unwrap();
            (runtime, worker)
        };
        let (runtime, worker) = tasks_on.spawn(begin).await.unwrap();
        StartedProcess { executor: Arc::new(runtime), worker: Box::new(worker) }
    }

    /// Returns the histories of all workflows of this harness: of first and resumed runs, of roots and children.
    async fn engine_records(&self, sessions: &[SessionId]) -> String {
        let histories = histories(&self.prefix, sessions).await;
        assert!(!histories.is_empty(), "Temporal has no workflow of this harness");
        histories.into_values().collect()
    }
}

mod sqlite {
    use helix_agents_store_sqlite::SqliteStore;

    use super::{Harness, Temporal};

    async fn harness() -> Harness<SqliteStore> {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("test.db")).await.unwrap();
        Harness::new(store, folder, Temporal::new())
    }

    helix_agents_conformance::runtime_suite!(harness);
}

mod postgres {
    use helix_agents_store_postgres::PostgresStore;
    use helix_agents_testkit::servers::{self, Afterwards};

    use super::{Harness, Temporal};

    async fn harness() -> Harness<PostgresStore> {
        let url = servers::postgres();
        let builder = PostgresStore::builder(&url).schema(servers::unique()).connections(4);
        let gone = builder.clone();
        let gone = Afterwards::new(|| async { gone.destroy().await.unwrap() });
        Harness::new(builder.open().await.unwrap(), gone, Temporal::new())
    }

    helix_agents_conformance::runtime_suite!(harness);
}

mod redis {
    use helix_agents_store_redis::RedisStore;
    use helix_agents_testkit::servers::{self, Afterwards};

    use super::{Harness, Temporal};

    async fn harness() -> Harness<RedisStore> {
        let builder = RedisStore::builder(&servers::redis()).prefix(servers::unique());
        let gone = builder.clone();
        let gone = Afterwards::new(|| async { gone.destroy().await.unwrap() });
        Harness::new(builder.open().await.unwrap(), gone, Temporal::new())
    }

    helix_agents_conformance::runtime_suite!(harness);
}
