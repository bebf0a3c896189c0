//! The parity suite, on stores that processes share.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use helix_agents_core::id::SessionId;
use helix_agents_runtime_temporal::{TemporalRuntime, TemporalWorker};
use helix_agents_testkit::runtime_suite::processes::{
    Boot, ProcessConfig, Processes, StartedProcess,
};
use helix_agents_testkit::servers;
use serde_json::Value;
use temporalio_client::{UntypedWorkflow, WorkflowFetchHistoryOptions};

use crate::deployment::temporal;

const LEAST_LEASE: Duration = Duration::from_secs(3);

type Harness<S> = Processes<S, Temporal>;

struct Temporal {
    /// What workflows of this harness are called by: its sessions are those of others, too.
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

    /// The histories of the first runs of root sessions.
    async fn engine_records(&self, sessions: &[SessionId]) -> String {
        let client = temporal().await;
        let mut records = String::new();
        for session in sessions {
            let id = format!("{}__teller__{session}", self.prefix);
            let workflow = client.get_workflow_handle::<UntypedWorkflow>(id);
            let history = workflow.fetch_history(WorkflowFetchHistoryOptions::default());
            // A child's workflow has another id, and is told of in its parent's.
            if let Ok(history) = history.to_json().await {
                let history = serde_json::from_slice(&history).unwrap();
                read(&history, &mut records);
            }
        }
        assert!(!records.is_empty(), "Temporal knows of no run");
        records
    }
}

/// Adds every text of a history, payloads as what they hold.
fn read(value: &Value, records: &mut String) {
    match value {
        Value::String(text) => {
            writeln!(records, "{text} {}", String::from_utf8_lossy(&decoded(text))).unwrap();
        }
        Value::Array(items) => items.iter().for_each(|item| read(item, records)),
        Value::Object(members) => members.values().for_each(|member| read(member, records)),
        _ => {}
    }
}

/// What a text stands for if it is base64.
fn decoded(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for letter in text.bytes() {
        let Some(six) = LETTERS.iter().position(|known| *known == letter) else { break };
        bits = bits << 6 | six as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
            bits &= (1 << count) - 1;
        }
    }
    bytes
}

mod sqlite {
    use helix_agents_store_sqlite::SqliteStore;

    use super::{Harness, Temporal};

    async fn harness() -> Harness<SqliteStore> {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("test.db")).await.unwrap();
        Harness::new(store, folder, Temporal::new())
    }

    helix_agents_testkit::runtime_suite!(harness);
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

    helix_agents_testkit::runtime_suite!(harness);
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

    helix_agents_testkit::runtime_suite!(harness);
}
