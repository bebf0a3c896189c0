//! Test support: applications in DBOS's tables, processes that can be killed, and an agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dbos::{Client, ClientConfig};
use helix_agents_core::agent::{Agent, AgentBuilder, AgentRegistry};
use helix_agents_core::tool::{Tool, ToolContext};
use helix_agents_runtime_durable::RuntimeBuilder as _;
use helix_agents_runtime_durable::{DurableRuntime, DurableRuntimeBuilder};
use helix_agents_store_sqlite::SqliteStore;
use helix_agents_test::{Reply, ScriptedLlm, within};
use helix_agents_testkit::servers::{self, Afterwards};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use tempfile::TempDir;

/// The schema shared by all tests, because creating a schema takes longer than most tests.
pub(crate) const SCHEMA: &str = "helix_dbos_tests";

/// A separate DBOS application for one test, deleted when dropped.
#[derive(Debug)]
pub(crate) struct TestApp {
    pub(crate) url: String,
    pub(crate) app: String,
    _gone: Option<Afterwards>,
}

impl TestApp {
    pub(crate) fn new() -> Self {
        let (url, app) = (servers::postgres(), servers::unique());
        let (gone_url, gone_app) = (url.clone(), app.clone());
        let gone = Afterwards::new(move || async move {
            let mut db = PgConnection::connect(&gone_url).await.unwrap();
            for table in ["workflow_status", "application_versions"] {
                let there = sqlx::query(
                    "SELECT EXISTS (SELECT FROM information_schema.columns WHERE table_schema = $1
                     AND table_name = $2 AND column_name = 'application_name')",
                );
                let there = there.bind(SCHEMA).bind(table).fetch_one(&mut db).await;
                if !there.unwrap().get::<bool, _>(0) {
                    // No test has created the current tables of DBOS on this server yet. Its migrations create the
                    // column after the table.
                    continue;
                }
                let sql = format!("DELETE FROM {SCHEMA}.{table} WHERE application_name = $1");
                sqlx::query(AssertSqlSafe(sql)).bind(&gone_app).execute(&mut db).await.unwrap();
            }
        });
        Self { url, app, _gone: Some(gone) }
    }

    /// Returns the application of another process, which deletes it.
    pub(crate) fn of(app: String) -> Self {
        Self { url: servers::postgres(), app, _gone: None }
    }

    /// Deletes the recorded steps of the workflows.
    pub(crate) async fn forget_steps(&self) {
        let sql = format!(
            "DELETE FROM {SCHEMA}.operation_outputs o USING {SCHEMA}.workflow_status w
             WHERE o.workflow_uuid = w.workflow_uuid AND w.application_name = $1"
        );
        let mut db = PgConnection::connect(&self.url).await.unwrap();
        let gone = sqlx::query(AssertSqlSafe(sql)).bind(&self.app).execute(&mut db).await;
        assert!(gone.unwrap().rows_affected() > 0);
    }

    /// Returns a builder for a runtime of this application.
    pub(crate) fn builder(&self) -> DurableRuntimeBuilder {
        DurableRuntime::builder()
            .database(&self.url)
            .schema(SCHEMA)
            .app_name(&self.app)
            .connections(4)
            .poll_interval(Duration::from_millis(50))
    }

    /// Returns a DBOS client for inspecting workflows.
    pub(crate) async fn client(&self) -> Client {
        let config = ClientConfig { schema: SCHEMA.to_owned(), ..ClientConfig::new(&self.url) };
        Client::connect(ClientConfig { app_name: Some(self.app.clone()), ..config }).await.unwrap()
    }

    /// Returns the ids (without the application's name) and statuses of the workflows, oldest first.
    pub(crate) async fn workflows(&self) -> Vec<(String, String)> {
        let sql = format!(
            "SELECT workflow_uuid, status FROM {SCHEMA}.workflow_status
             WHERE application_name = $1 ORDER BY created_at, workflow_uuid"
        );
        let mut db = PgConnection::connect(&self.url).await.unwrap();
        let rows = sqlx::query(AssertSqlSafe(sql)).bind(&self.app).fetch_all(&mut db).await;
        let prefix = format!("{}__", self.app);
        let row = |row: sqlx::postgres::PgRow| {
            (row.get::<String, _>(0).replacen(&prefix, "", 1), row.get(1))
        };
        rows.unwrap().into_iter().map(row).collect()
    }

    /// Waits until the workflows have these statuses. DBOS records an end after the run has ended in the log.
    pub(crate) async fn wait_for_statuses(&self, expected: &[(&str, &str)]) {
        let expected: Vec<_> =
            expected.iter().map(|(id, status)| ((*id).to_owned(), (*status).to_owned())).collect();
        let mut found = Vec::new();
        for _ in 0..500 {
            found = self.workflows().await;
            if found == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(found, expected);
    }

    /// Returns the step names of a workflow, in order.
    pub(crate) async fn steps(&self, id: &str) -> Vec<String> {
        let client = self.client().await;
        let steps = client.list_workflow_steps(&format!("{}__{id}", self.app)).await.unwrap();
        client.close().await;
        steps.into_iter().map(|step| step.step_name).collect()
    }

    /// Returns the contents of all rows.
    pub(crate) async fn dump(&self) -> String {
        let sql = format!(
            "SELECT coalesce(string_agg(w::text || coalesce(o::text, ''), E'\\n'), '')
             FROM {SCHEMA}.workflow_status w
             LEFT JOIN {SCHEMA}.operation_outputs o USING (workflow_uuid)
             WHERE w.application_name = $1"
        );
        let mut db = PgConnection::connect(&self.url).await.unwrap();
        sqlx::query(AssertSqlSafe(sql)).bind(&self.app).fetch_one(&mut db).await.unwrap().get(0)
    }
}

/// A simulated process: a runtime whose workflows run on a separate tokio runtime.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) runtime: DurableRuntime,
    threads: Option<tokio::runtime::Runtime>,
}

impl Process {
    pub(crate) async fn boot(builder: DurableRuntimeBuilder) -> Self {
        let threads =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let threads = threads.unwrap();
        let runtime = builder.tasks_on(threads.handle().clone()).connect().await.unwrap();
        Self { runtime, threads: Some(threads) }
    }

    /// Kills the process without a shutdown.
    pub(crate) async fn kill(mut self) {
        let threads = self.threads.take().unwrap();
        let stop = move || threads.shutdown_timeout(Duration::from_secs(60));
        within(tokio::task::spawn_blocking(stop)).await.unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

/// Returns a store in a temporary folder.
pub(crate) async fn scratch() -> (SqliteStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("test.db")).await.unwrap();
    (store, folder)
}

/// A tool input with one field.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Word {
    pub(crate) word: String,
}

/// A shared counter.
#[derive(Debug, Default, Clone)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn increment(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Returns a tool that counts its calls.
pub(crate) fn counting(count: &Count) -> Tool {
    let count = count.clone();
    Tool::function("act", "Acts.", move |input: Word, _: ToolContext| {
        count.increment();
        async move { Ok(input.word) }
    })
}

/// Returns a call of the counting tool.
pub(crate) fn act() -> Reply {
    Reply::tool_call("act", json!({ "word": "x" }))
}

/// Returns an agent builder.
pub(crate) fn teller() -> AgentBuilder {
    Agent::builder("teller").system_prompt("You tell.").model("scripted")
}

/// Returns a registry with this agent.
pub(crate) fn registry(agent: &Agent) -> AgentRegistry {
    let registry = AgentRegistry::default();
    registry.register(agent).unwrap();
    registry
}

/// Returns a model that calls the tool once and then answers.
pub(crate) fn acts_once() -> ScriptedLlm {
    ScriptedLlm::new([act(), Reply::text("done")])
}
