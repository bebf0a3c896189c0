//! The parity suite on every store that processes can share.

use helix_agents_runtime::RuntimeBuilder as _;
use std::sync::Arc;

use async_trait::async_trait;
use helix_agents_conformance::runtime_suite::processes::{
    Boot, ProcessConfig, Processes, StartedProcess,
};
use helix_agents_core::id::SessionId;

use crate::support::TestApp;

type Harness<S> = Processes<S, TestApp>;

#[async_trait]
impl Boot for TestApp {
    async fn boot(&self, with: ProcessConfig) -> StartedProcess {
        let ProcessConfig { world, store, streams, tasks_on } = with;
        let runtime = self
            .builder()
            .state_store(store)
            .stream_manager(streams)
            .llm_adapter(world.llm)
            .registry(world.registry)
            .lease(world.lease)
            .grace(world.grace)
            .auto_resume(world.auto_resume)
            .observers(world.observers)
            .tasks_on(tasks_on)
            .connect()
            .await
            .unwrap();
        StartedProcess { executor: Arc::new(runtime), worker: Box::new(()) }
    }

    async fn engine_records(&self, _: &[SessionId]) -> String {
        let records = self.dump().await;
        assert!(!records.is_empty(), "DBOS knows of no run");
        records
    }
}

mod sqlite {
    use helix_agents_store_sqlite::SqliteStore;

    use super::{Harness, TestApp};

    async fn harness() -> Harness<SqliteStore> {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("test.db")).await.unwrap();
        Harness::new(store, folder, TestApp::new())
    }

    helix_agents_conformance::runtime_suite!(harness);
}

mod postgres {
    use helix_agents_store_postgres::PostgresStore;
    use helix_agents_testkit::servers::{self, Afterwards};

    use super::{Harness, TestApp};

    async fn harness() -> Harness<PostgresStore> {
        let url = servers::postgres();
        let builder = PostgresStore::builder(&url).schema(servers::unique()).connections(4);
        let gone = builder.clone();
        let gone = Afterwards::new(|| async { gone.destroy().await.unwrap() });
        Harness::new(builder.open().await.unwrap(), gone, TestApp::new())
    }

    helix_agents_conformance::runtime_suite!(harness);
}

mod redis {
    use helix_agents_store_redis::RedisStore;
    use helix_agents_testkit::servers::{self, Afterwards};

    use super::{Harness, TestApp};

    async fn harness() -> Harness<RedisStore> {
        let builder = RedisStore::builder(&servers::redis()).prefix(servers::unique());
        let gone = builder.clone();
        let gone = Afterwards::new(|| async { gone.destroy().await.unwrap() });
        Harness::new(builder.open().await.unwrap(), gone, TestApp::new())
    }

    helix_agents_conformance::runtime_suite!(harness);
}
