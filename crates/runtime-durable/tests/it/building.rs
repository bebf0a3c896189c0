//! Invalid options of the builder, and the reported guarantees.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};
use helix_agents_core::hooks::AgentHooks;
use helix_agents_runtime_durable::RuntimeBuilder as _;
use helix_agents_runtime_durable::{DurableRuntime, DurableRuntimeBuilder};
use helix_agents_store_memory::MemoryStore;
use helix_agents_test::{ScriptedLlm, within};
use helix_agents_testkit::servers::{pgbouncer, unique};

use crate::support::{TestApp, acts_once, scratch, teller};

async fn refused(builder: DurableRuntimeBuilder) -> Error {
    within(builder.connect()).await.unwrap_err()
}

#[tokio::test]
async fn invalid_options_are_refused_with_instructions() {
    let (store, _folder) = scratch().await;
    let good = || {
        DurableRuntime::builder().store(store.clone()).llm(acts_once()).database("postgres://h/d")
    };
    let cases = [
        (DurableRuntime::builder().store(store.clone()).llm(acts_once()), "call `database`"),
        (DurableRuntime::builder().database("postgres://h/d").llm(acts_once()), "call `store`"),
        (good().store(MemoryStore::new()), "use a SQLite, PostgreSQL or Redis store"),
        (good().database("redis://h"), "does not start with `postgres://`"),
        (good().schema("Helix"), "lower-case letters"),
        (good().schema("helix_agents"), "use a separate schema for DBOS"),
        (good().app_name("a"), "3 to 100"),
        (good().executor_id("local"), "unique among running processes"),
        (good().executor_id(""), "unique among running processes"),
        (good().connections(1), "at least 2 connections"),
        (good().max_runs(0), "at least 1"),
        (good().poll_interval(Duration::ZERO), "must not be zero"),
        (good().lease(Duration::from_millis(1)), "at least 300 ms"),
    ];
    for (builder, expected) in cases {
        let error = refused(builder).await;
        assert_eq!(error.code(), ErrorCode::ConfigInvalid, "{error}");
        assert!(error.message().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn the_error_for_an_unreachable_database_omits_the_password() {
    let (store, _folder) = scratch().await;
    let nowhere = "postgres://me:secret@127.0.0.1:1/nowhere";
    let builder = DurableRuntime::builder().store(store).llm(acts_once()).database(nowhere);
    assert!(!format!("{builder:?}").contains("secret"));
    let error = refused(builder).await;
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    assert!(error.message().contains("check the URL and that the server is running"), "{error}");
}

#[tokio::test]
async fn missing_tables_are_created() {
    use sqlx::{AssertSqlSafe, Connection as _};

    let (store, _folder) = scratch().await;
    let (app, schema) = (TestApp::new(), unique());
    let builder = || app.builder().schema(&schema).store(store.clone()).llm(acts_once());
    // Both runtimes create the tables, or one finds existing ones.
    let (one, other) = tokio::join!(within(builder().connect()), within(builder().connect()));
    let (one, other) = (one.unwrap(), other.unwrap());
    let agent = teller().build().unwrap();
    let handle = one.execute(agent.erased(), "go".into(), ExecuteOptions::default()).await.unwrap();
    within(handle.result()).await.unwrap();
    within(one.shutdown()).await;
    within(other.shutdown()).await;
    let mut db = sqlx::PgConnection::connect(&app.url).await.unwrap();
    let drop_schema = format!("DROP SCHEMA {schema} CASCADE");
    sqlx::query(AssertSqlSafe(drop_schema)).execute(&mut db).await.unwrap();
}

#[derive(Debug)]
struct Silent;

impl AgentHooks for Silent {}

#[tokio::test]
async fn hooks_of_one_execution_are_refused_with_an_executor_id() {
    let (store, _folder) = scratch().await;
    let app = TestApp::new();
    let agent = teller().build().unwrap();
    let builder = || app.builder().store(store.clone()).llm(ScriptedLlm::new([]));
    let runtime = builder().executor_id("slot-1").connect().await.unwrap();
    let options = ExecuteOptions::default().hooks(Silent);
    let refused = runtime.execute(agent.erased(), "go".into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConfigInvalid);
    within(runtime.shutdown()).await;
}

fn one(guarantees: &[Guarantee], promise: GuaranteeKind) -> &Guarantee {
    guarantees.iter().find(|guarantee| guarantee.promise == promise).unwrap()
}

#[test]
fn a_runtime_reports_every_guarantee() {
    let builder = || DurableRuntime::builder().lease(Duration::from_millis(2500));
    let guarantees = builder().guarantees();
    let promises: Vec<_> = guarantees.iter().map(|guarantee| guarantee.promise).collect();
    assert_eq!(promises, GuaranteeKind::OF_RUNTIMES);
    assert!(guarantees.iter().all(|guarantee| guarantee.holds));
    assert!(one(&guarantees, GuaranteeKind::TakenOver).reason.contains("2.5 s"));
    let named = builder().executor_id("slot-1").guarantees();
    assert!(one(&named, GuaranteeKind::TakenOver).reason.starts_with("immediately"));
}

#[tokio::test]
async fn the_error_for_a_pooler_contains_instructions() {
    let (store, _folder) = scratch().await;
    let builder = TestApp::new().builder().database(pgbouncer()).store(store).llm(acts_once());
    let error = refused(builder).await;
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    assert!(error.message().contains("ignore_startup_parameters"), "{error}");
}
