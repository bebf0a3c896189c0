//! The tables, and how older ones become newer.
//!
//! The schema says that it is ours by its table `helix_schema`, whose rows are the migrations that were done.
//! Migrations only go forward. A released one is never changed: add another.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use helix_agents_core::error::{Error, ErrorCode, Result};

use crate::connections::{Connections, drive};
use crate::error::Failure;
use crate::sql::Schema;

/// What makes schema n + 1 of schema n.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
];

/// What is locked while tables are made: all stores of a database take turns.
const LOCK: i64 = 0x484c_5841;

const REGISTER: &str = "CREATE TABLE {s}.helix_schema (
    number integer PRIMARY KEY, done_at timestamptz NOT NULL DEFAULT now())";

/// What is in the schema.
enum Found {
    /// There is none, or nothing is in it; the answer tells which.
    Nothing { exists: bool },
    /// A store, with this many migrations done.
    Ours(usize),
}

/// Brings the tables up to date. Leaves those of others, and of newer versions, as they are. Returns how many
/// migrations had been done.
pub(crate) async fn run(connections: &Connections, schema: &Schema) -> Result<u32> {
    drive!(connections, |connection| migrate(connection, schema))
}

async fn migrate(connection: &mut PgConnection, schema: &Schema) -> Result<u32, Failure> {
    // Without a lock, and without a right to create anything.
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
    // Another process may have been faster.
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

/// Checks that the tables need no change.
pub(crate) async fn check(connections: &Connections, schema: &Schema) -> Result<()> {
    let found = drive!(connections, |connection| inspect(connection, schema));
    let done = match found? {
        Found::Ours(done) if done == MIGRATIONS.len() => return Ok(()),
        Found::Ours(done) => done,
        Found::Nothing { .. } => 0,
    };
    let message = "the tables are not there yet, or of an older version, and were not to be \
        changed; run `helix migrate`";
    Err(Error::new(ErrorCode::StoreOlder, message)
        .with_context("schema", done)
        .with_context("known", MIGRATIONS.len()))
}

/// The schema that this version writes.
pub(crate) fn newest() -> u32 {
    number(MIGRATIONS.len())
}

/// How many migrations were done; none if there is no schema, or nothing in it.
pub(crate) async fn done(
    connection: &mut PgConnection,
    schema: &Schema,
) -> Result<Option<u32>, Failure> {
    Ok(match inspect(connection, schema).await? {
        Found::Nothing { .. } => None,
        Found::Ours(done) => Some(number(done)),
    })
}

/// Removes a store.
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
                let message = "another program's tables are in the schema; name another one";
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
