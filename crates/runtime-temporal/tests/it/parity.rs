//! The parity suite, on stores that processes share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt as _;
use helix_agents_core::agent::Agent;
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::id::SessionId;
use helix_agents_core::session::RunStatus;
use helix_agents_runtime_temporal::{TemporalRuntime, TemporalWorker};
use helix_agents_testkit::gate::within;
use helix_agents_testkit::runtime_suite::processes::{
    Boot, ProcessConfig, Processes, StartedProcess,
};
use helix_agents_testkit::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};
use helix_agents_testkit::servers;
use serde_json::{Value, json};
use temporalio_client::{
    Client, UntypedWorkflow, WorkflowFetchHistoryOptions, WorkflowListOptions,
};

use crate::deployment::{Deployment, temporal};

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

    /// The histories of all workflows of this harness: of first and of resumed runs, of roots and of children.
    async fn engine_records(&self, sessions: &[SessionId]) -> String {
        let histories = self.histories(sessions).await;
        assert!(!histories.is_empty(), "Temporal knows of no run");
        histories.into_values().collect()
    }
}

impl Temporal {
    /// The texts in the histories of all workflows of this harness, by the workflows' ids.
    async fn histories(&self, sessions: &[SessionId]) -> BTreeMap<String, String> {
        let client = temporal().await;
        let known = sessions.iter().map(|session| format!("{}__teller__{session}", self.prefix));
        let mut left: BTreeSet<String> = known.collect();
        left.extend(self.listed(&client).await);
        let (mut looked_up, mut histories) = (BTreeSet::new(), BTreeMap::new());
        while let Some(id) = left.pop_first() {
            looked_up.insert(id.clone());
            let workflow = client.get_workflow_handle::<UntypedWorkflow>(&*id);
            let history = workflow.fetch_history(WorkflowFetchHistoryOptions::default());
            // Not each session has a first run of this agent, and not each text that looks like an id is one.
            let Ok(history) = history.to_json().await else { continue };
            let history = serde_json::from_slice(&history).unwrap();
            let mut texts = String::new();
            read(&history, &mut texts);
            // A history names the workflows of children.
            let named = texts.split_whitespace().filter(|word| word.starts_with(&self.prefix));
            left.extend(named.map(str::to_owned).filter(|id| !looked_up.contains(id)));
            histories.insert(id, texts);
        }
        histories
    }

    /// The ids of all workflows of this harness. The server lists a workflow some time after its start, so the list counts
    /// when it stays as it is.
    async fn listed(&self, client: &Client) -> BTreeSet<String> {
        const PAUSE: Duration = Duration::from_millis(300);
        let query = format!("WorkflowId STARTS_WITH '{}__'", self.prefix);
        let mut before = None;
        loop {
            let listed = client.list_workflows(&*query, WorkflowListOptions::default());
            let ids = listed.map_ok(|workflow| workflow.id().to_owned());
            let ids: BTreeSet<String> = ids.try_collect().await.unwrap();
            if before.as_ref() == Some(&ids) {
                return ids;
            }
            before = Some(ids);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// The first and the resumed run of a root, and the run of its child.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_hold_the_histories_of_resumed_runs_and_of_children() {
    let here = Deployment::new().await;
    let helper = Agent::builder("helper")
        .description("Finds things out.")
        .system_prompt("You find out.")
        .model("scripted")
        .output_schema(json!({"type": "object"}))
        .build()
        .unwrap();
    let teller = Agent::builder("teller").system_prompt("You tell.").model("scripted");
    let teller = teller.sub_agent(&helper).build().unwrap();
    let agents = [teller.erased(), helper.erased()];
    let asks = Reply::tool_call("subagent__helper", json!({"message": "moon"}));
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([asks, Reply::text("done"), Reply::text("again")]))
        .agent("helper", ScriptedLlm::new([Reply::finish(json!({}))]));
    let worker = here.worker(llm, &agents).await;
    for input in ["go", "go on"] {
        let options = ExecuteOptions::default().session("story");
        let handle = worker.runtime.execute(Arc::clone(&agents[0]), input.into(), options);
        let result = within(handle.await.unwrap().result()).await.unwrap();
        assert_eq!(result.status, RunStatus::Completed);
    }
    worker.shut_down().await;
    let temporal = Temporal { prefix: here.prefix.clone() };
    let histories = temporal.histories(&["story".into()]).await;
    let runs = ["helper__story-sub-1.0", "teller__story", "teller__story__resume-1"];
    let expected = runs.map(|run| format!("{}__{run}", here.prefix));
    assert_eq!(histories.into_keys().collect::<Vec<_>>(), expected);
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

/// Decodes a text if it is base64.
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
