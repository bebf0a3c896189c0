//! Lists of sessions.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::SessionId;
use helix_agents_core::store::{Head, MAX_PAGE, Page, SessionFilter, SessionUsage};

use super::head;
use super::tags::{self, Tag};
use crate::clock;
use crate::error::{Failure, not_found};

/// The table whose index has the order of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// All sessions.
    Sessions,
    /// The sessions with one tag.
    Tag,
}

impl Source {
    /// Returns the tables to select from. The two `?` of [`Tag`](Self::Tag) take key and value.
    const fn tables(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            // A `CROSS JOIN` reads its left side first.
            Self::Tag => {
                "(SELECT created_at AS tagged_at, session AS tagged FROM session_tags
                  WHERE key = ? AND value = ?) CROSS JOIN sessions ON session = tagged"
            }
        }
    }

    /// Returns the columns for the creation time and the session that the index contains.
    const fn columns(self) -> (&'static str, &'static str) {
        match self {
            Self::Sessions => ("sessions.created_at", "sessions.session"),
            Self::Tag => ("tagged_at", "tagged"),
        }
    }
}

/// SQL conditions and their values.
struct Conditions {
    source: Source,
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition. Each `?` in it takes one of the values.
    fn add<const N: usize>(&mut self, sql: impl Into<String>, values: [Value; N]) {
        self.sql.push(sql.into());
        self.values.extend(values);
    }

    /// Returns the conditions of a filter. `leading` is the tag whose sessions are read in the
    /// order of the list.
    fn of(filter: &SessionFilter, leading: Option<Tag<'_>>, now: Timestamp) -> Self {
        let text = |text: &str| Value::Text(text.to_owned());
        let source = if leading.is_some() { Source::Tag } else { Source::Sessions };
        let mut conditions = Self { source, sql: Vec::new(), values: Vec::new() };
        conditions
            .values
            .extend(leading.into_iter().flat_map(|(key, value)| [key, value].map(text)));
        let (created_at, session) = source.columns();
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
            conditions.add(format!("{created_at} >= ?"), [from.0.into()]);
        }
        if let Some(before) = filter.created_before {
            conditions.add(format!("{created_at} < ?"), [before.0.into()]);
        }
        let tags = filter.tags.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        for (key, value) in tags.filter(|tag| leading != Some(*tag)) {
            let has_tag = format!(
                "EXISTS (SELECT 1 FROM session_tags AS tag
                     WHERE tag.session = {session} AND tag.key = ? AND tag.value = ?)"
            );
            conditions.add(has_tag, [key, value].map(text));
        }
        conditions
    }

    fn query(&self, columns: &str, limit: u32) -> String {
        let filters = if self.sql.is_empty() { "TRUE".to_owned() } else { self.sql.join(" AND ") };
        let limit = limit.min(MAX_PAGE);
        let tables = self.source.tables();
        let (created_at, session) = self.source.columns();
        format!(
            "SELECT {columns} FROM {tables} WHERE {filters}
             ORDER BY {created_at} DESC, {session} DESC LIMIT {limit}"
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
    filter.check()?;
    let transaction = connection.transaction()?;
    let now = clock::now();
    let leading = tags::rarest(&transaction, filter)?;
    let mut conditions = Conditions::of(filter, leading, now);
    if let Some(after) = &page.after {
        let place = [created_at(&transaction, after)?.into(), after.as_str().to_owned().into()];
        let (created_at, session) = conditions.source.columns();
        conditions.add(format!("({created_at}, {session}) < (?, ?)"), place);
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
