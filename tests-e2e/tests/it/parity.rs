//! The parity suite of the local runtime, on the stores with a server.

use std::sync::Arc;

use async_trait::async_trait;
use helix_agents::RuntimeBuilder as _;
use helix_agents::runtime_local::LocalRuntime;
use helix_agents_conformance::runtime_suite::processes::{
    Boot, ProcessConfig, Processes, StartedProcess,
};

type Harness<S> = Processes<S, Local>;

struct Local;

#[async_trait]
impl Boot for Local {
    async fn boot(&self, with: ProcessConfig) -> StartedProcess {
        let ProcessConfig { world, store, streams, tasks_on } = with;
        let runtime = LocalRuntime::builder()
            .state_store(store)
            .stream_manager(streams)
            .llm_adapter(world.llm)
            .registry(world.registry)
            .lease(world.lease)
            .grace(world.grace)
            .auto_resume(world.auto_resume)
            .observers(world.observers)
            .tasks_on(tasks_on)
            .build()
            .unwrap();
        StartedProcess { executor: Arc::new(runtime), worker: Box::new(()) }
    }
}

mod postgres {
    use helix_agents::store_postgres::PostgresStore;
    use helix_agents_testkit::servers::{self, Afterwards};

    use super::{Harness, Local};

    async fn harness() -> Harness<PostgresStore> {
        let url = servers::postgres();
        let builder = PostgresStore::builder(&url).schema(servers::unique()).connections(4);
        let gone = builder.clone();
        let gone = Afterwards::new(|| async { gone.destroy().await.unwrap() });
        Harness::new(builder.open().await.unwrap(), gone, Local)
    }

    helix_agents_conformance::runtime_suite!(harness);
}

mod redis {
    use helix_agents::store_redis::RedisStore;
    use helix_agents_testkit::servers::{self, Afterwards};

    use super::{Harness, Local};

    async fn harness() -> Harness<RedisStore> {
        let builder = RedisStore::builder(&servers::redis()).prefix(servers::unique());
        let gone = builder.clone();
        let gone = Afterwards::new(|| async { gone.destroy().await.unwrap() });
        Harness::new(builder.open().await.unwrap(), gone, Local)
    }

    helix_agents_conformance::runtime_suite!(harness);
}
