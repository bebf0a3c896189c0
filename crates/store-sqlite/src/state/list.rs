//! Lists of sessions.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Head, MAX_PAGE, Page, SessionFilter, SessionUsage};

use super::head;
use crate::clock;
use crate::error::{Failure, not_found};

/// SQL conditions and their values.
#[derive(Default)]
struct Conditions {
    sql: Vec<&'static str>,
    values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition. Each `?` in it takes one of the values.
    fn add<const N: usize>(&mut self, sql: &'static str, values: [Value; N]) {
        self.sql.push(sql);
        self.values.extend(values);
    }

    fn of(filter: &SessionFilter, now: Timestamp) -> Self {
        let text = |text: &str| Value::Text(text.to_owned());
        let mut conditions = Self::default();
        if let Some(agent) = &filter.agent {
            conditions.add("agent = ?", [text(agent)]);
        }
        if let Some(status) = filter.status {
            conditions.add("status = ?", [text(status.as_str())]);
        }
        if let Some(root) = &filter.root {
            conditions.add("root = ?", [text(root.as_str())]);
        }
        if let Some(runtime) = &filter.runtime {
            conditions.add("runtime = ?", [text(runtime)]);
        }
        if filter.pending {
            conditions.add("pending > 0", []);
        }
        if filter.lease_expired {
            let expired = "run IS NOT NULL AND coalesce(lease_until, 0) <= ?";
            conditions.add(expired, [now.0.into()]);
        }
        if filter.wake_due {
            conditions.add("wake_at IS NOT NULL AND wake_at <= ?", [now.0.into()]);
        }
        if let Some(from) = filter.created_from {
            conditions.add("created_at >= ?", [from.0.into()]);
        }
        if let Some(before) = filter.created_before {
            conditions.add("created_at < ?", [before.0.into()]);
        }
        conditions
    }

    fn query(&self, columns: &str, limit: u32) -> String {
        let filters = if self.sql.is_empty() { "TRUE".to_owned() } else { self.sql.join(" AND ") };
        let limit = limit.min(MAX_PAGE);
        format!(
            "SELECT {columns} FROM sessions WHERE {filters}
             ORDER BY created_at DESC, session DESC LIMIT {limit}"
        )
    }
}

pub(super) fn list(
    connection: &mut Connection,
    filter: &SessionFilter,
    page: &Page,
) -> Result<Vec<Head>, Failure> {
    select(connection, filter, page, head::COLUMNS, head::from_row)
}

/// Lists sessions with their usage.
pub(super) fn list_usage(
    connection: &mut Connection,
    filter: &SessionFilter,
    page: &Page,
) -> Result<Vec<SessionUsage>, Failure> {
    let columns = format!("{}, usage", head::COLUMNS);
    select(connection, filter, page, &columns, head::usage_from_row)
}

fn select<T>(
    connection: &mut Connection,
    filter: &SessionFilter,
    page: &Page,
    columns: &str,
    read: impl Fn(&Row<'_>, Timestamp) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let transaction = connection.transaction()?;
    let now = clock::now();
    let mut conditions = Conditions::of(filter, now);
    if let Some(after) = &page.after {
        let created_at = created_at(&transaction, after)?;
        let place = [created_at.into(), after.as_str().to_owned().into()];
        conditions.add("(created_at, session) < (?, ?)", place);
    }
    let mut statement = transaction.prepare(&conditions.query(columns, page.limit))?;
    let mut rows = statement.query(params_from_iter(conditions.values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row, now)?);
    }
    Ok(found)
}

fn created_at(connection: &Connection, session: &SessionId) -> Result<i64, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT created_at FROM sessions WHERE session = ?1")?;
    let found = statement.query_row([session.as_str()], |row| row.get(0)).optional()?;
    found.ok_or_else(|| not_found(session))
}

#[cfg(test)]
mod tests;
