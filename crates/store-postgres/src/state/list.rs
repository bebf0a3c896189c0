//! Lists of sessions.

use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::{Arguments as _, Row as _};

use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Head, MAX_PAGE, Page, SessionFilter, SessionUsage};

use super::head;
use crate::error::{Failure, not_found};
use crate::sql::{Schema, Sql};

#[derive(Debug)]
pub(super) struct Statements {
    created_at: Sql,
    schema: Schema,
}

impl Statements {
    pub(super) fn new(schema: &Schema) -> Self {
        let created_at = schema.sql("SELECT created_at FROM {s}.sessions WHERE session = $1");
        Self { created_at, schema: schema.clone() }
    }
}

/// The columns for creation time and session in the index that has the order of the list.
#[derive(Debug, Clone, Copy)]
struct Columns {
    created_at: &'static str,
    session: &'static str,
}

/// SQL conditions and their values.
struct Conditions {
    tables: String,
    columns: Columns,
    sql: Vec<String>,
    values: PgArguments,
}

impl Conditions {
    /// Adds a condition. The `?` in it takes the value.
    fn add<'q, V>(&mut self, sql: &str, value: V) -> Result<(), Failure>
    where
        V: sqlx::Encode<'q, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        let place = self.value(value)?;
        self.sql.push(sql.replace('?', &place));
        Ok(())
    }

    /// Adds a value. Returns its placeholder in the statement.
    fn value<'q, V>(&mut self, value: V) -> Result<String, Failure>
    where
        V: sqlx::Encode<'q, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        self.values.add(value).map_err(sqlx::Error::Encode)?;
        Ok(format!("${}", self.values.len()))
    }

    /// Creates conditions without any, on all sessions.
    fn new() -> Self {
        let columns = Columns { created_at: "sessions.created_at", session: "sessions.session" };
        let (tables, values) = ("{s}.sessions".to_owned(), PgArguments::default());
        Self { tables, columns, sql: Vec::new(), values }
    }

    /// Restricts empty conditions to the sessions with a tag, read in the order of the list.
    fn lead_by(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        let (key, value) = (self.value(key)?, self.value(value)?);
        self.columns = Columns { created_at: "tagged_at", session: "tagged" };
        self.tables = format!(
            "(SELECT created_at AS tagged_at, session AS tagged FROM {{s}}.session_tags
              WHERE key = {key} AND value = {value}) AS tag
             JOIN {{s}}.sessions ON sessions.session = tagged"
        );
        Ok(())
    }

    fn of(filter: &SessionFilter) -> Result<Self, Failure> {
        let mut conditions = Self::new();
        let mut tags = filter.tags.iter();
        // The index of these conditions is smaller than that of a tag.
        let has_smaller_index = filter.root.is_some() || filter.lease_expired || filter.wake_due;
        if !has_smaller_index && let Some((key, value)) = tags.next() {
            conditions.lead_by(key, value)?;
        }
        let Columns { created_at, session } = conditions.columns;
        for (key, value) in tags {
            let (key, value) = (conditions.value(key)?, conditions.value(value)?);
            conditions.sql.push(format!(
                "EXISTS (SELECT FROM {{s}}.session_tags AS tag
                     WHERE tag.session = {session} AND tag.key = {key} AND tag.value = {value})"
            ));
        }
        if let Some(agent) = &filter.agent {
            conditions.add("agent = ?", &**agent)?;
        }
        if let Some(status) = filter.status {
            conditions.add("status = ?", status.as_str())?;
        }
        if let Some(root) = &filter.root {
            conditions.add("root = ?", root.as_str())?;
        }
        if let Some(runtime) = &filter.runtime {
            conditions.add("runtime = ?", &**runtime)?;
        }
        if filter.pending {
            conditions.sql.push("pending > 0".to_owned());
        }
        // The clock is read once in a subquery, so that the server can use an index.
        if filter.lease_expired {
            let expired = "run IS NOT NULL AND coalesce(lease_until, 0) <= (SELECT {now})";
            conditions.sql.push(expired.to_owned());
        }
        if filter.wake_due {
            let due = "wake_at IS NOT NULL AND wake_at <= (SELECT {now})";
            conditions.sql.push(due.to_owned());
        }
        if let Some(from) = filter.created_from {
            conditions.add(&format!("{created_at} >= ?"), from.0)?;
        }
        if let Some(before) = filter.created_before {
            conditions.add(&format!("{created_at} < ?"), before.0)?;
        }
        Ok(conditions)
    }

    /// Builds the query. `more` contains the columns after those of the head.
    fn query(&mut self, more: &str, limit: u32) -> Result<String, Failure> {
        let limit = self.value(i64::from(limit.min(MAX_PAGE)))?;
        let filters = if self.sql.is_empty() { "true".to_owned() } else { self.sql.join(" AND ") };
        let (selected, read_at, tables) = (head::COLUMNS, head::READ_AT, &self.tables);
        let Columns { created_at, session } = self.columns;
        Ok(format!(
            "SELECT {selected}, {read_at}{more} FROM {tables} WHERE {filters}
             ORDER BY {created_at} DESC, {session} DESC LIMIT {limit}"
        ))
    }
}

pub(super) async fn list(
    connection: &mut PgConnection,
    statements: &Statements,
    filter: &SessionFilter,
    page: &Page,
) -> Result<Vec<Head>, Failure> {
    let rows = select(connection, statements, filter, page, "").await?;
    rows.iter().map(head::from_row).collect()
}

/// Lists sessions with their usage.
pub(super) async fn list_usage(
    connection: &mut PgConnection,
    statements: &Statements,
    filter: &SessionFilter,
    page: &Page,
) -> Result<Vec<SessionUsage>, Failure> {
    let rows = select(connection, statements, filter, page, ", usage").await?;
    rows.iter().map(head::usage_from_row).collect()
}

async fn select(
    connection: &mut PgConnection,
    statements: &Statements,
    filter: &SessionFilter,
    page: &Page,
    more: &str,
) -> Result<Vec<PgRow>, Failure> {
    filter.check()?;
    let mut conditions = Conditions::of(filter)?;
    if let Some(after) = &page.after {
        let Columns { created_at, session } = conditions.columns;
        let time = self::created_at(connection, statements, after).await?;
        let time = conditions.value(time)?;
        let follows = format!("({created_at}, {session}) < ({time}, ?)");
        conditions.add(&follows, after.as_str())?;
    }
    let query = statements.schema.sql(&conditions.query(more, page.limit)?);
    Ok(query.query_with(conditions.values).fetch_all(connection).await?)
}

/// Returns the creation time of a session. It never changes, so a separate query is safe.
async fn created_at(
    connection: &mut PgConnection,
    statements: &Statements,
    session: &SessionId,
) -> Result<i64, Failure> {
    let query = statements.created_at.query().bind(session.as_str());
    let row = query.fetch_optional(connection).await?.ok_or_else(|| not_found(session))?;
    Ok(row.try_get(0)?)
}
