//! Heads as rows.

use std::collections::BTreeMap;

use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{
    Append, Head, NewSession, Position, SessionStatus, SessionUsage, Summary,
};

use crate::error::{Failure, corrupt, of_session};
use crate::sql::{Schema, Sql};

/// The columns that [`from_row`] reads, in order. The time of the read follows them.
pub(super) const COLUMNS: &str = "session, agent, root, parent, tags, created_at, version, append, \
    updated_at, status, run, runtime, pending, wake_at, lease_until";

/// The time of the read.
pub(super) const READ_AT: &str = "greatest({now}, updated_at)";

/// The maximum length of an agent name, so that it fits into an index with other columns.
const MAX_KEY_BYTES: usize = 600;

pub(super) fn statement(schema: &Schema) -> Sql {
    schema.sql(&format!("SELECT {COLUMNS}, {READ_AT} FROM {{s}}.sessions WHERE session = $1"))
}

/// Returns the head of a session, if the session exists.
pub(super) async fn find(
    connection: &mut PgConnection,
    sql: &Sql,
    session: &SessionId,
) -> Result<Option<Head>, Failure> {
    let row = sql.query().bind(session.as_str()).fetch_optional(connection).await?;
    row.as_ref().map(from_row).transpose()
}

/// Rejects a new session whose row could not be written.
pub(super) fn check_new(new: &NewSession, first: &Append) -> Result<()> {
    if new.agent.len() <= MAX_KEY_BYTES {
        return Ok(());
    }
    let message = "an agent's name is longer than 600 bytes";
    Err(Error::new(ErrorCode::InputInvalid, message).with_context("session", &first.session))
}

/// Returns the stored form of a session's tags.
pub(super) fn tags(new: &NewSession) -> Result<String> {
    serde_json::to_string(&new.tags).map_err(|error| {
        Error::new(ErrorCode::Internal, "tags cannot be written as JSON").with_source(error)
    })
}

pub(super) fn from_row(row: &PgRow) -> Result<Head, Failure> {
    let session = SessionId::from(row.try_get::<&str, _>(0)?);
    read_row(row, &session).map_err(|failure| Failure::Own(of_session(failure.into(), &session)))
}

/// Returns the stored form of an append's usage.
pub(super) fn usage_text(append: &Append) -> Result<Option<String>> {
    let text = append.usage.as_ref().map(|usage| serde_json::to_string(&**usage)).transpose();
    text.map_err(|error| {
        Error::new(ErrorCode::Internal, "usage cannot be written as JSON").with_source(error)
    })
}

/// Reads a head, the time of the read, and the usage column after them.
pub(super) fn usage_from_row(row: &PgRow) -> Result<SessionUsage, Failure> {
    let head = from_row(row)?;
    let usage = row.try_get::<Option<&str>, _>(16)?.map(serde_json::from_str).transpose();
    let usage =
        usage.map_err(|_| corrupt(&head.session, "the usage of the session is unreadable"))?;
    Ok(SessionUsage { head, usage })
}

/// Parses the stored form of a session's tags.
pub(super) fn parse_tags(
    session: &SessionId,
    text: &str,
) -> Result<BTreeMap<String, String>, Failure> {
    let tags = serde_json::from_str(text);
    tags.map_err(|_| corrupt(session, "the tags of the session are unreadable"))
}

fn read_row(row: &PgRow, session: &SessionId) -> Result<Head, Failure> {
    let time = |index: usize| row.try_get::<i64, _>(index).map(Timestamp);
    let time_or_none =
        |index: usize| row.try_get::<Option<i64>, _>(index).map(|time| time.map(Timestamp));
    let tags = parse_tags(session, row.try_get(4)?)?;
    let version = u64::try_from(row.try_get::<i64, _>(6)?)
        .map_err(|_| corrupt(session, "the session's version is negative"))?;
    let status = SessionStatus::parse(row.try_get(9)?)
        .ok_or_else(|| corrupt(session, "the session has an unknown status"))?;
    let pending = u32::try_from(row.try_get::<i64, _>(12)?)
        .map_err(|_| corrupt(session, "the session has an invalid number of pending calls"))?;
    Ok(Head {
        session: session.clone(),
        created: NewSession {
            agent: row.try_get::<&str, _>(1)?.into(),
            root: row.try_get::<&str, _>(2)?.into(),
            parent: row.try_get::<Option<&str>, _>(3)?.map(SessionId::from),
            tags,
        },
        position: Position { version, append: AppendId::from(row.try_get::<&str, _>(7)?) },
        summary: Summary {
            status,
            run: row.try_get::<Option<&str>, _>(10)?.map(RunId::from),
            runtime: row.try_get::<&str, _>(11)?.into(),
            pending,
            wake_at: time_or_none(13)?,
        },
        lease_until: time_or_none(14)?,
        created_at: time(5)?,
        updated_at: time(8)?,
        read_at: time(15)?,
    })
}
