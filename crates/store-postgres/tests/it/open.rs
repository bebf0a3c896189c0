//! Opening a store: creation, rejection, and concurrent opening.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

use helix_agents_core::error::ErrorCode;
use helix_agents_core::guarantee::GuaranteeKind;
use helix_agents_core::store::{Page, SessionFilter, SessionUsage, StateStore as _};
use helix_agents_store_postgres::PostgresStore;
use helix_agents_testkit::servers;

use super::support::{Database, create, id, ids, refused};

#[tokio::test]
async fn a_reopened_store_has_its_data() {
    let database = Database::new();
    let store = database.open().await;
    create(&store, &id("s")).await;
    store.close().await;
    let store = database.open().await;
    assert_eq!(ids(&store, &id("s")).await, ["first"]);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_not_changed() {
    let database = Database::new();
    database.open().await.close().await;
    database.sql("INSERT INTO {s}.helix_schema (number) VALUES (99)").await;
    refused(database.builder(), ErrorCode::StoreNewer).await;
    refused(database.builder().migrate_on_open(false), ErrorCode::StoreNewer).await;
    let error = database.builder().inspect().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreNewer);
    // The test's cleanup needs this.
    database.sql("DELETE FROM {s}.helix_schema WHERE number = 99").await;
}

#[tokio::test]
async fn a_schema_of_another_program_is_refused_and_not_changed() {
    let database = Database::new();
    database.sql("CREATE SCHEMA {s}; CREATE TABLE {s}.notes (text text)").await;
    refused(database.builder(), ErrorCode::StoreForeign).await;
    let error = database.builder().destroy().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreForeign);
    assert_eq!(database.sql("SELECT * FROM {s}.notes").await.len(), 0);
    database.sql("DROP SCHEMA {s} CASCADE").await;
}

#[tokio::test]
async fn an_existing_empty_schema_is_used() {
    let database = Database::new();
    database.sql("CREATE SCHEMA {s}").await;
    create(&database.open().await, &id("s")).await;
}

#[tokio::test]
async fn without_migration_the_tables_must_exist() {
    let database = Database::new();
    refused(database.builder().migrate_on_open(false), ErrorCode::StoreOlder).await;
    assert_eq!(database.builder().migrate().await.unwrap(), (0, 5));
    assert_eq!(database.builder().migrate().await.unwrap(), (5, 5));
    database.builder().migrate_on_open(false).open().await.unwrap();
}

#[tokio::test]
async fn tables_of_the_first_schema_are_migrated() {
    let database = Database::new();
    create(&database.open().await, &id("s")).await;
    for old in [
        "DROP TABLE {s}.session_tags",
        "DROP TABLE {s}.snapshots",
        "ALTER TABLE {s}.streams DROP COLUMN fencing_token",
        "ALTER TABLE {s}.marks DROP COLUMN fencing_token",
        "ALTER TABLE {s}.sessions DROP COLUMN usage",
        "DELETE FROM {s}.helix_schema WHERE number > 1",
    ] {
        database.sql(old).await;
    }
    refused(database.builder().migrate_on_open(false), ErrorCode::StoreOlder).await;
    assert_eq!(database.builder().migrate().await.unwrap(), (1, 5));
    let store = database.open().await;
    assert_eq!(store.read_log(&id("s"), 0, 10).await.unwrap().len(), 1);
    assert_eq!(store.snapshot(&id("s")).await.unwrap(), None);
    let usages = store.list_usage(&SessionFilter::default(), &Page::default()).await.unwrap();
    assert!(matches!(&*usages, [SessionUsage { usage: None, .. }]), "{usages:?}");
}

/// As in production: a user with write privileges on the tables needs no `CREATE` privilege.
#[tokio::test]
async fn a_user_without_create_privilege_can_use_existing_tables() {
    let database = Database::new();
    database.open().await.close().await;
    let user = servers::unique();
    database
        .sql(&format!(
            "CREATE USER {user} PASSWORD 'secret'; GRANT USAGE ON SCHEMA {{s}} TO {user};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {{s}} TO {user};"
        ))
        .await;
    let (_, place) = database.url.rsplit_once('@').unwrap();
    let url = format!("postgres://{user}:secret@{place}");
    let builder = PostgresStore::builder(&url).schema(&database.schema).connections(2);
    for migrates in [true, false] {
        let store = builder.clone().migrate_on_open(migrates).open().await.unwrap();
        create(&store, &id(&format!("s{migrates}"))).await;
        assert!(store.delete(&id(&format!("s{migrates}"))).await.unwrap());
        store.close().await;
    }
    let other = builder.schema(servers::unique()).open().await.unwrap_err();
    assert_eq!(other.code(), ErrorCode::StoreReadOnly, "{other}");
    database.sql(&format!("DROP OWNED BY {user}; DROP USER {user}")).await;
}

#[tokio::test]
async fn an_unreachable_or_invalid_database_is_reported() {
    let database = Database::new();
    for (url, code) in [
        ("postgres://helix@127.0.0.1:1/postgres", ErrorCode::StoreUnavailable),
        ("mysql://localhost", ErrorCode::ConfigInvalid),
        ("nonsense", ErrorCode::ConfigInvalid),
    ] {
        refused(PostgresStore::builder(url), code).await;
    }
    let (server, _) = database.url.rsplit_once('/').unwrap();
    let no_database = format!("{server}/nosuch");
    refused(PostgresStore::builder(&no_database), ErrorCode::ConfigInvalid).await;
    let (_, place) = database.url.rsplit_once('@').unwrap();
    let stranger = format!("postgres://helix:wrong@{place}");
    let error = PostgresStore::open(&stranger).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::ConfigInvalid, "{error}");
    assert!(!format!("{error:?}").contains("wrong"), "the error contains the password");
    for name in ["", "pg_catalog", "a\nb", &"x".repeat(64)] {
        refused(database.builder().schema(name), ErrorCode::ConfigInvalid).await;
    }
}

#[tokio::test]
async fn a_builder_does_not_show_its_password() {
    let builder = PostgresStore::builder("postgres://helix:geheim@localhost/x");
    assert!(!format!("{builder:?}").contains("geheim"));
}

#[tokio::test]
async fn a_url_may_name_the_schema() {
    let database = Database::new();
    let schema = servers::unique();
    for url in [
        format!("{}&schema={schema}", database.url),
        format!("{}?schema={schema}", database.url.split_once('?').unwrap().0),
    ] {
        let store = PostgresStore::builder(&url).connections(1).open().await.unwrap();
        store.close().await;
        let there = format!("SELECT 1 FROM \"{schema}\".sessions");
        assert_eq!(database.sql(&there).await.len(), 0);
        PostgresStore::builder(&url).destroy().await.unwrap();
    }
}

#[tokio::test]
async fn a_closed_store_fails_with_closed() {
    let database = Database::new();
    let store = database.open().await;
    create(&store, &id("s")).await;
    store.close().await;
    assert_eq!(store.head(&id("s")).await.unwrap_err().code(), ErrorCode::Closed);
}

#[tokio::test]
async fn a_supplied_pool_is_used_and_stays_open() {
    let database = Database::new();
    let pool = sqlx::postgres::PgPoolOptions::new().max_connections(2);
    let pool = pool.connect(&database.url).await.unwrap();
    let store = PostgresStore::with_pool(pool.clone()).schema(&database.schema);
    let store = store.open().await.unwrap();
    create(&store, &id("s")).await;
    store.close().await;
    assert_eq!(store.head(&id("s")).await.unwrap_err().code(), ErrorCode::Closed);
    sqlx::query("SELECT 1").execute(&pool).await.unwrap();
    pool.close().await;
}

#[tokio::test]
async fn operations_beyond_the_connection_limit_wait_or_time_out() {
    let database = Database::new();
    let builder = database.builder().connections(1);
    let store = builder.connection_timeout(Duration::from_secs(2)).open().await.unwrap();
    for number in 0..20 {
        create(&store, &id(&format!("s{number}"))).await;
    }
    let heads: Vec<_> = (0..20).map(|number| id(&format!("s{number}"))).collect();
    let heads =
        futures_util::future::join_all(heads.iter().map(|session| store.head(session))).await;
    assert!(heads.into_iter().all(|head| head.unwrap().is_some()));
    // One statement waits on the only connection.
    let mut other = PgConnection::connect(&database.url).await.unwrap();
    let name = database.schema.replace('"', "\"\"");
    let lock = format!("BEGIN; LOCK TABLE \"{name}\".sessions");
    sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut other).await.unwrap();
    let session = id("s0");
    let (first, second) = tokio::join!(store.head(&session), async {
        let waits = format!(
            "SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid)
             WHERE NOT granted AND application_name = '{}'",
            database.name
        );
        while database.sql(&waits).await.is_empty() {}
        let second = store.head(&session).await;
        sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
        second
    });
    assert!(first.unwrap().is_some());
    assert_eq!(second.unwrap_err().code(), ErrorCode::StoreBusy);
}

#[tokio::test]
async fn guarantees_follow_the_settings_of_the_server() {
    let database = Database::new();
    let store = database.open().await;
    let power = |store: &PostgresStore| {
        let all = store.guarantees();
        all.into_iter()
            .find(|guarantee| guarantee.promise == GuaranteeKind::SurvivesPowerLoss)
            .unwrap()
    };
    assert!(power(&store).holds, "{:?}", power(&store));
    let url = format!("{}&options=-c%20synchronous_commit%3Doff", database.url);
    let store = PostgresStore::builder(&url).schema(&database.schema).open().await.unwrap();
    assert!(!power(&store).holds, "{:?}", power(&store));
}

/// The order of ids must not depend on the locale of the database.
#[tokio::test]
async fn text_is_compared_by_its_bytes() {
    let database = Database::new();
    database.open().await.close().await;
    let schema = database.schema.replace('\'', "''");
    let others = format!(
        "SELECT table_name || '.' || column_name FROM information_schema.columns
         WHERE table_schema = '{schema}' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'
         ORDER BY 1"
    );
    let rows = database.sql(&others).await;
    let others: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(
        others,
        ["sessions.tags", "sessions.usage", "streams.open"],
        "only these columns are never compared"
    );
}
