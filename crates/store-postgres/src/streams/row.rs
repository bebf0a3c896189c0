//! The state of a stream: its row and the watermarks of children.

use sqlx::Row as _;
use sqlx::postgres::{PgConnection, PgRow};

use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{CachedStream, SessionWatermark, StreamState, decode_open};

use crate::error::{Failure, corrupt};
use crate::sql::{Schema, Sql};

/// The columns that [`known`] reads, in order.
const FIND: &str = "SELECT revision, last_seq, trimmed, last_attempt, marked, marked_seq, open,
        ARRAY(SELECT m.session FROM {s}.marks m WHERE m.stream = stream.id ORDER BY m.session),
        ARRAY(SELECT m.version FROM {s}.marks m WHERE m.stream = stream.id ORDER BY m.session),
        ARRAY(SELECT m.seq FROM {s}.marks m WHERE m.stream = stream.id ORDER BY m.session),
        ARRAY(SELECT m.fencing_token FROM {s}.marks m WHERE m.stream = stream.id ORDER BY m.session),
        fencing_token
    FROM {s}.streams AS stream WHERE stream.session = $1";

/// Creates the statement that finds a stream by its session.
pub(super) fn statement(schema: &Schema) -> Sql {
    schema.sql(FIND)
}

/// Returns the state of a stream, or the default state if there is none.
pub(super) async fn find(
    connection: &mut PgConnection,
    sql: &Sql,
    session: &SessionId,
) -> Result<CachedStream, Failure> {
    let row = sql.query().bind(session.as_str()).fetch_optional(connection).await?;
    row.map_or_else(|| Ok(CachedStream::default()), |row| known(&row, session))
}

fn known(row: &PgRow, session: &SessionId) -> Result<CachedStream, Failure> {
    let number = |index: usize| -> Result<u64, Failure> { unsigned(row.try_get(index)?, session) };
    let open = decode_open(session, row.try_get(6)?)
        .ok_or_else(|| corrupt(session, "the attempts of the stream are unreadable"))?;
    let own = SessionWatermark { version: number(4)?, seq: number(5)?, fencing_token: number(11)? };
    let mut state = StreamState {
        last_seq: number(1)?,
        last_attempt: number(3)?,
        open,
        ..StreamState::default()
    };
    if own != SessionWatermark::default() {
        state.marked.insert(session.clone(), own);
    }
    let children: Vec<String> = row.try_get(7)?;
    let (versions, seqs): (Vec<i64>, Vec<i64>) = (row.try_get(8)?, row.try_get(9)?);
    let tokens: Vec<i64> = row.try_get(10)?;
    for (((child, version), seq), token) in children.into_iter().zip(versions).zip(seqs).zip(tokens)
    {
        let marked = SessionWatermark {
            version: unsigned(version, session)?,
            seq: unsigned(seq, session)?,
            fencing_token: unsigned(token, session)?,
        };
        state.marked.insert(SessionId::from(child), marked);
    }
    let revision = row.try_get::<i64, _>(0)?.cast_unsigned();
    Ok(CachedStream { revision, trimmed: number(2)?, state })
}

pub(super) fn unsigned(number: i64, session: &SessionId) -> Result<u64, Failure> {
    u64::try_from(number).map_err(|_| corrupt(session, "a number of the stream is negative"))
}
