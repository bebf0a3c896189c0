//! Heads as rows.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row, params};

use helix_agents_core::clock::Timestamp;
use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::{AppendId, RunId, SessionId};
use helix_agents_core::store::{
    Append, Head, NewSession, Position, SessionStatus, SessionUsage, Summary,
};

use super::tags;
use crate::clock;
use crate::error::{Failure, corrupt, of_session};
use crate::unsigned::Unsigned;

/// The columns that [`from_row`] reads, in order.
pub(super) const COLUMNS: &str = "session, agent, root, parent, tags, created_at, version, append, \
    updated_at, status, run, runtime, pending, wake_at, lease_until";

/// Returns the head of a session, if the session exists.
pub(super) fn find(connection: &Connection, session: &SessionId) -> Result<Option<Head>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM sessions WHERE session = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([session.as_str()])?;
    rows.next()?.map(|row| from_row(row, clock::now())).transpose()
}

/// Inserts the row and the tags of a new session after its first append. Returns its key, which
/// differs from every log that has or had appends in the table.
pub(super) fn insert(
    connection: &Connection,
    new: &NewSession,
    first: &Append,
    lease_until: Option<Timestamp>,
    now: Timestamp,
) -> Result<i64, Failure> {
    let message = "a session's first append needs a summary";
    let summary = first.summary.as_ref();
    let summary = summary.ok_or_else(|| Error::new(ErrorCode::InputInvalid, message))?;
    let tags = serde_json::to_string(&new.tags).map_err(|error| {
        Error::new(ErrorCode::Internal, "tags cannot be written as JSON").with_source(error)
    })?;
    connection
        .prepare_cached(
            "INSERT INTO sessions (id, session, agent, root, parent, tags, created_at, version,
                 append, updated_at, status, run, runtime, pending, wake_at, lease_until, usage)
             VALUES (
                 max(coalesce((SELECT id FROM sessions ORDER BY id DESC LIMIT 1), 0),
                     coalesce((SELECT key >> 32 FROM appends ORDER BY key DESC LIMIT 1), 0)) + 1,
                 ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?6, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            first.session.as_str(),
            &*new.agent,
            new.root.as_str(),
            new.parent.as_ref().map(SessionId::as_str),
            tags,
            now.0,
            Unsigned(first.expected.version + u64::from(first.count)),
            first.id.as_str(),
            summary.status.as_str(),
            summary.run.as_ref().map(RunId::as_str),
            &*summary.runtime,
            summary.pending,
            summary.wake_at.map(|at| at.0),
            lease_until.map(|until| until.0),
            usage_text(first)?,
        ])?;
    let key = connection.last_insert_rowid();
    tags::insert(connection, new, &first.session, now)?;
    Ok(key)
}

pub(super) fn from_row(row: &Row<'_>, now: Timestamp) -> Result<Head, Failure> {
    let session = SessionId::from(row.get::<_, String>(0)?);
    read_row(row, &session, now)
        .map_err(|failure| Failure::Own(of_session(failure.into(), &session)))
}

/// Returns the stored form of an append's usage.
pub(super) fn usage_text(append: &Append) -> Result<Option<String>, Failure> {
    let text = append.usage.as_ref().map(|usage| serde_json::to_string(&**usage)).transpose();
    Ok(text.map_err(|error| {
        Error::new(ErrorCode::Internal, "usage cannot be written as JSON").with_source(error)
    })?)
}

/// Reads a head and the usage column after it.
pub(super) fn usage_from_row(row: &Row<'_>, now: Timestamp) -> Result<SessionUsage, Failure> {
    let head = from_row(row, now)?;
    let unreadable = || corrupt(&head.session, "the usage of the session is unreadable");
    let text = row.get_ref(15)?.as_str_or_null().map_err(|_| unreadable())?;
    let usage = text.map(serde_json::from_str).transpose().map_err(|_| unreadable())?;
    Ok(SessionUsage { head, usage })
}

fn read_row(row: &Row<'_>, session: &SessionId, now: Timestamp) -> Result<Head, Failure> {
    let tags: BTreeMap<String, String> =
        serde_json::from_str(row.get_ref(4)?.as_str().unwrap_or(""))
            .map_err(|_| corrupt(session, "the tags of the session are unreadable"))?;
    let status = row.get_ref(9)?.as_str().ok().and_then(SessionStatus::parse);
    let updated_at = Timestamp(row.get(8)?);
    Ok(Head {
        session: session.clone(),
        created: NewSession {
            agent: row.get::<_, String>(1)?.into(),
            root: row.get::<_, String>(2)?.into(),
            parent: row.get::<_, Option<String>>(3)?.map(SessionId::from),
            tags,
        },
        position: Position {
            version: Unsigned::get(row, 6)?,
            append: AppendId::from(row.get::<_, String>(7)?),
        },
        summary: Summary {
            status: status.ok_or_else(|| corrupt(session, "the session has an unknown status"))?,
            run: row.get::<_, Option<String>>(10)?.map(RunId::from),
            runtime: row.get::<_, String>(11)?.into(),
            pending: row.get(12)?,
            wake_at: row.get::<_, Option<i64>>(13)?.map(Timestamp),
        },
        lease_until: row.get::<_, Option<i64>>(14)?.map(Timestamp),
        created_at: Timestamp(row.get(5)?),
        updated_at,
        read_at: now.max(updated_at),
    })
}
