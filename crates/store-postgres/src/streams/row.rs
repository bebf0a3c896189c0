//! How a stream stands: its own row, and how far the logs of children are marked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};

use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{Attempt, Effect, Marked, OpenAttempt, StreamInfo};

use crate::error::{Failure, corrupt};
use crate::sql::{Schema, Sql};

/// The columns that [`Known::from_row`] reads, in its order, of a table `stream`.
const COLUMNS: &str = "stream.id, stream.revision, stream.last_seq, stream.trimmed,
    stream.last_attempt, stream.marked, stream.marked_seq, stream.open,
    ARRAY(SELECT m.session FROM {s}.marks m WHERE m.stream = stream.id ORDER BY m.session),
    ARRAY(SELECT m.version FROM {s}.marks m WHERE m.stream = stream.id ORDER BY m.session),
    ARRAY(SELECT m.seq FROM {s}.marks m WHERE m.stream = stream.id ORDER BY m.session),
    stream.writer";

/// Finds a stream by its session.
pub(super) fn statement(schema: &Schema) -> Sql {
    schema.sql(&format!("SELECT {COLUMNS} FROM {{s}}.streams AS stream WHERE stream.session = $1"))
}

/// How a stream stands, as far as is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    pub(super) id: i64,
    /// What it is the state of.
    pub(super) revision: i64,
    /// Who made it.
    pub(super) writer: i64,
    pub(super) last_seq: u64,
    /// The last chunk that is not kept any more.
    pub(super) trimmed: u64,
    pub(super) last_attempt: u64,
    /// The last mark of the stream's own session.
    pub(super) marked: Marked,
    /// Those of children.
    pub(super) marks: BTreeMap<SessionId, Marked>,
    /// Attempts that were neither settled nor discarded, in the order in which they began.
    pub(super) open: Vec<Open>,
}

/// An attempt that was neither settled nor discarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Open {
    #[serde(rename = "a")]
    pub(super) attempt: Attempt,
    #[serde(rename = "e")]
    pub(super) effect: Effect,
    /// The child that tries; none for the stream's own session.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(super) child: Option<SessionId>,
    /// The last chunk before it began.
    #[serde(rename = "b")]
    pub(super) began: u64,
}

pub(super) async fn find(
    connection: &mut PgConnection,
    sql: &Sql,
    session: &SessionId,
) -> Result<Option<Known>, Failure> {
    let row = sql.query().bind(session.as_str()).fetch_optional(connection).await?;
    row.map(|row| Known::from_row(&row, session)).transpose()
}

impl Known {
    fn from_row(row: &PgRow, session: &SessionId) -> Result<Self, Failure> {
        let number =
            |index: usize| -> Result<u64, Failure> { unsigned(row.try_get(index)?, session) };
        let open = serde_json::from_str(row.try_get(7)?)
            .map_err(|_| corrupt(session, "the attempts of the stream cannot be read"))?;
        let children: Vec<String> = row.try_get(8)?;
        let (versions, seqs): (Vec<i64>, Vec<i64>) = (row.try_get(9)?, row.try_get(10)?);
        let mut marks = BTreeMap::new();
        for ((child, version), seq) in children.into_iter().zip(versions).zip(seqs) {
            let marked =
                Marked { version: unsigned(version, session)?, seq: unsigned(seq, session)? };
            marks.insert(SessionId::from(child), marked);
        }
        Ok(Self {
            id: row.try_get(0)?,
            revision: row.try_get(1)?,
            writer: row.try_get(11)?,
            last_seq: number(2)?,
            trimmed: number(3)?,
            last_attempt: number(4)?,
            marked: Marked { version: number(5)?, seq: number(6)? },
            marks,
            open,
        })
    }

    pub(super) fn is_open(&self, attempt: Attempt) -> bool {
        self.open.iter().any(|open| open.attempt == attempt)
    }

    /// Takes those that are open off the list of open attempts; returns them.
    pub(super) fn close(&mut self, attempts: &[Attempt]) -> Vec<Attempt> {
        let closed = self.open.extract_if(.., |open| attempts.contains(&open.attempt));
        closed.map(|open| open.attempt).collect()
    }

    pub(super) fn info(self, session: &SessionId) -> StreamInfo {
        let mut marked = self.marks;
        if self.marked.version > 0 {
            marked.insert(session.clone(), self.marked);
        }
        let open = self.open.into_iter().map(|open| OpenAttempt {
            attempt: open.attempt,
            session: open.child.unwrap_or_else(|| session.clone()),
            effect: open.effect,
            began: open.began,
        });
        let is_kept = self.trimmed < self.last_seq;
        StreamInfo {
            first_seq: if is_kept { self.trimmed + 1 } else { 0 },
            last_seq: self.last_seq,
            marked,
            open: open.collect(),
        }
    }
}

pub(super) fn unsigned(number: i64, session: &SessionId) -> Result<u64, Failure> {
    u64::try_from(number).map_err(|_| corrupt(session, "a number of the stream is negative"))
}
