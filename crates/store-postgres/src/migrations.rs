//! The tables and their migrations.
//!
//! The table `helix_schema` marks a schema as the store's. Its rows are the completed migrations.
//! Migrations only go forward. Never change a released migration; add another one.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::connections::{Connections, drive};
use crate::error::Failure;
use crate::sql::Schema;

/// The migrations. The one at index n turns schema n into schema n + 1.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
];

/// The advisory lock that is held during a migration, so that the stores of a database migrate one
/// at a time.
const LOCK: i64 = 0x484c_5841;

const REGISTER: &str = "CREATE TABLE {s}.helix_schema (
    number integer PRIMARY KEY, done_at timestamptz NOT NULL DEFAULT now())";

/// The contents of the schema.
enum Found {
    /// The schema does not exist or is empty.
    Nothing { exists: bool },
    /// A store, with the number of completed migrations.
    Ours(usize),
}

/// Migrates the tables to the newest schema. Does not change tables of other programs or newer
/// versions. Returns the number of migrations that had been completed before.
pub(crate) async fn run(connections: &Connections, schema: &Schema) -> Result<u32> {
    drive!(connections, |connection| migrate(connection, schema))
}

async fn migrate(connection: &mut PgConnection, schema: &Schema) -> Result<u32, Failure> {
    // This check needs neither the lock nor a `CREATE` privilege.
    if let Found::Ours(done) = inspect(connection, schema).await?
        && done == MIGRATIONS.len()
    {
        return Ok(number(done));
    }
    let mut transaction = connection.begin().await?;
    schema
        .sql("SELECT pg_advisory_xact_lock($1)")
        .query()
        .bind(LOCK)
        .execute(&mut transaction)
        .await?;
    // Another process may have migrated the tables meanwhile.
    let found = inspect(&mut transaction, schema).await?;
    let done = match found {
        Found::Ours(done) => done,
        Found::Nothing { exists } => {
            if !exists {
                execute(&mut transaction, schema, "CREATE SCHEMA {s}").await?;
            }
            execute(&mut transaction, schema, REGISTER).await?;
            0
        }
    };
    for (index, migration) in MIGRATIONS.iter().enumerate().skip(done) {
        execute(&mut transaction, schema, migration).await?;
        let register = format!("INSERT INTO {{s}}.helix_schema (number) VALUES ({})", index + 1);
        execute(&mut transaction, schema, &register).await?;
    }
    transaction.commit().await?;
    Ok(number(done))
}

/// Checks that the tables need no migration.
pub(crate) async fn check(connections: &Connections, schema: &Schema) -> Result<()> {
    let found = drive!(connections, |connection| inspect(connection, schema));
    let done = match found? {
        Found::Ours(done) if done == MIGRATIONS.len() => return Ok(()),
        Found::Ours(done) => done,
        Found::Nothing { .. } => 0,
    };
    let message = "the tables do not exist or are of an older version, and migration on open is \
        disabled; run `helix migrate`";
    Err(Error::new(ErrorCode::StoreOlder, message)
        .with_context("schema", done)
        .with_context("known", MIGRATIONS.len()))
}

/// Returns the schema version that this version of the store writes.
pub(crate) fn newest() -> u32 {
    number(MIGRATIONS.len())
}

/// Returns the number of completed migrations, or `None` if the schema does not exist or is empty.
pub(crate) async fn done(
    connection: &mut PgConnection,
    schema: &Schema,
) -> Result<Option<u32>, Failure> {
    Ok(match inspect(connection, schema).await? {
        Found::Nothing { .. } => None,
        Found::Ours(done) => Some(number(done)),
    })
}

/// Drops the schema of a store.
pub(crate) async fn destroy(connections: &Connections, schema: &Schema) -> Result<()> {
    drive!(connections, |connection| async {
        if let Found::Ours(_) = inspect(&mut *connection, schema).await? {
            execute(connection, schema, "DROP SCHEMA IF EXISTS {s} CASCADE").await?;
        }
        Ok(())
    })
}

async fn execute(
    connection: &mut PgConnection,
    schema: &Schema,
    text: &str,
) -> Result<(), Failure> {
    sqlx::raw_sql(AssertSqlSafe(schema.text(text))).execute(connection).await?;
    Ok(())
}

async fn inspect(connection: &mut PgConnection, schema: &Schema) -> Result<Found, Failure> {
    let tables = schema.sql(
        "SELECT bool_or(c.relname = 'helix_schema'), count(c.oid)
         FROM pg_namespace n LEFT JOIN pg_class c
             ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
         WHERE n.nspname = $1 GROUP BY n.oid",
    );
    let Some(row) = tables.query().bind(schema.name()).fetch_optional(&mut *connection).await?
    else {
        return Ok(Found::Nothing { exists: false });
    };
    if row.try_get::<Option<bool>, _>(0)? != Some(true) {
        return match row.try_get::<i64, _>(1)? {
            0 => Ok(Found::Nothing { exists: true }),
            _ => {
                let message =
                    "the schema contains tables of another program; choose another schema";
                Err(Error::new(ErrorCode::StoreForeign, message)
                    .with_context("schema", schema.name())
                    .into())
            }
        };
    }
    let done = schema.sql("SELECT coalesce(max(number), 0) FROM {s}.helix_schema");
    let done: i32 = done.query().fetch_one(connection).await?.try_get(0)?;
    match usize::try_from(done) {
        Ok(done) if done <= MIGRATIONS.len() => Ok(Found::Ours(done)),
        _ => {
            let message = "a newer version wrote the database; upgrade this program";
            Err(Error::new(ErrorCode::StoreNewer, message)
                .with_context("schema", done)
                .with_context("known", MIGRATIONS.len())
                .into())
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
