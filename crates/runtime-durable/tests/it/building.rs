//! What is refused when the runtime is put together, and what it says of itself.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::executor::{AgentExecutor as _, ExecuteOptions};
use helix_agents_core::guarantee::{Guarantee, GuaranteeKind};
use helix_agents_core::hooks::AgentHooks;
use helix_agents_runtime_durable::{DurableRuntime, DurableRuntimeBuilder};
use helix_agents_store_memory::MemoryStore;
use helix_agents_testkit::gate::within;
use helix_agents_testkit::scripted::ScriptedLlm;
use helix_agents_testkit::servers::{pgbouncer, unique};

use crate::support::{Corner, acts_once, scratch, teller};

async fn refused(builder: DurableRuntimeBuilder) -> Error {
    within(builder.connect()).await.unwrap_err()
}

#[tokio::test]
async fn what_cannot_work_is_refused_with_what_to_do() {
    let (store, _folder) = scratch().await;
    let good = || {
        DurableRuntime::builder().store(store.clone()).llm(acts_once()).database("postgres://h/d")
    };
    let cases = [
        (DurableRuntime::builder().store(store.clone()).llm(acts_once()), "call `database`"),
        (DurableRuntime::builder().database("postgres://h/d").llm(acts_once()), "call `store`"),
        (good().store(MemoryStore::new()), "use a SQLite, PostgreSQL or Redis store"),
        (good().database("redis://h"), "does not begin with `postgres://`"),
        (good().schema("Helix"), "lower-case letters"),
        (good().schema("helix_agents"), "give DBOS one of its own"),
        (good().app_name("a"), "3 to 100"),
        (good().executor_id("local"), "name the slot"),
        (good().executor_id(""), "name the slot"),
        (good().connections(1), "at least 2 connections"),
        (good().max_runs(0), "at least 1"),
        (good().poll_interval(Duration::ZERO), "must not be zero"),
        (good().lease(Duration::from_millis(1)), "at least 300 ms"),
    ];
    for (builder, says) in cases {
        let error = refused(builder).await;
        assert_eq!(error.code(), ErrorCode::ConfigInvalid, "{error}");
        assert!(error.message().contains(says), "{error}");
    }
}

#[tokio::test]
async fn a_database_that_is_not_there_is_told_of_without_its_password() {
    let (store, _folder) = scratch().await;
    let nowhere = "postgres://me:secret@127.0.0.1:1/nowhere";
    let builder = DurableRuntime::builder().store(store).llm(acts_once()).database(nowhere);
    assert!(!format!("{builder:?}").contains("secret"));
    let error = refused(builder).await;
    assert_eq!(error.code(), ErrorCode::StoreUnavailable);
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    assert!(error.message().contains("does the server run"), "{error}");
}

#[tokio::test]
async fn the_tables_are_made_where_there_are_none() {
    use sqlx::{AssertSqlSafe, Connection as _};

    let (store, _folder) = scratch().await;
    let (corner, schema) = (Corner::new(), unique());
    let builder = || corner.builder().schema(&schema).store(store.clone()).llm(acts_once());
    // Both make them, or one finds them made.
    let (one, other) = tokio::join!(within(builder().connect()), within(builder().connect()));
    let (one, other) = (one.unwrap(), other.unwrap());
    let agent = teller().build().unwrap();
    let handle = one.execute(agent.erased(), "go".into(), ExecuteOptions::default()).await.unwrap();
    within(handle.result()).await.unwrap();
    within(one.shutdown()).await;
    within(other.shutdown()).await;
    let mut db = sqlx::PgConnection::connect(&corner.url).await.unwrap();
    let drop_schema = format!("DROP SCHEMA {schema} CASCADE");
    sqlx::query(AssertSqlSafe(drop_schema)).execute(&mut db).await.unwrap();
}

#[derive(Debug)]
struct Silent;

impl AgentHooks for Silent {}

#[tokio::test]
async fn hooks_of_one_execution_are_refused_where_others_may_go_on() {
    let (store, _folder) = scratch().await;
    let corner = Corner::new();
    let agent = teller().build().unwrap();
    let builder = || corner.builder().store(store.clone()).llm(ScriptedLlm::new([]));
    let runtime = builder().executor_id("slot-1").connect().await.unwrap();
    let options = ExecuteOptions::default().hooks(Silent);
    let refused = runtime.execute(agent.erased(), "go".into(), options).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ConfigInvalid);
    within(runtime.shutdown()).await;
}

fn one(guarantees: &[Guarantee], promise: GuaranteeKind) -> &Guarantee {
    guarantees.iter().find(|it| it.promise == promise).unwrap()
}

#[test]
fn a_runtime_reports_every_guarantee() {
    let builder = || DurableRuntime::builder().lease(Duration::from_millis(2500));
    let guarantees = builder().guarantees();
    let promises: Vec<_> = guarantees.iter().map(|it| it.promise).collect();
    assert_eq!(promises, GuaranteeKind::OF_RUNTIMES);
    assert!(guarantees.iter().all(|it| it.holds));
    assert!(one(&guarantees, GuaranteeKind::TakenOver).reason.contains("2.5 s"));
    let named = builder().executor_id("slot-1").guarantees();
    assert!(one(&named, GuaranteeKind::TakenOver).reason.starts_with("at once"));
}

#[tokio::test]
async fn a_pooler_that_refuses_the_client_is_told_of_with_what_to_do() {
    let (store, _folder) = scratch().await;
    let builder = Corner::new().builder().database(pgbouncer()).store(store).llm(acts_once());
    let error = refused(builder).await;
    assert_eq!(error.code(), ErrorCode::ConfigInvalid);
    assert!(error.message().contains("ignore_startup_parameters"), "{error}");
}
