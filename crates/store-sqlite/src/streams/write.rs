//! Writing to streams: a batch inserts one row of chunks and updates the stream's row.

use rusqlite::{OptionalExtension as _, Row, params};

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    Batch, BatchReceipt, Change, Encoded, SessionWatermark, StreamInfo,
};

use super::read;
use super::row::{Statements, StreamRow};
use crate::error::Failure;
use crate::prepared::Tables;
use crate::row_key;
use crate::unsigned::Unsigned;

/// A batch and its encoded chunks. The caller encodes them to relieve the writing thread.
pub(super) struct Prepared {
    batch: Batch,
    encoded: Encoded,
}

impl Prepared {
    pub(super) fn new(batch: Batch) -> Result<Self> {
        Ok(Self { encoded: Encoded::new(&batch.ops)?, batch })
    }
}

pub(super) fn write(
    tables: &mut Tables<'_>,
    session: &SessionId,
    prepared: &Prepared,
    retention: u64,
) -> Result<BatchReceipt, Failure> {
    let mut stream = Stream::find(tables, session)?;
    stream.load_watermark(&prepared.batch.writer.session)?;
    let change = stream.row.state.apply(&prepared.batch)?;
    if change.is_changed {
        let body = prepared.encoded.body(&change.placed)?;
        stream.save(&change, &body)?;
        stream.trim(retention)?;
        stream.save_row()?;
    }
    Ok(change.written)
}

pub(super) fn reset(tables: &mut Tables<'_>, session: &SessionId) -> Result<(), Failure> {
    let mut stream = Stream::find(tables, session)?;
    if stream.row.key == 0 {
        return Ok(());
    }
    let (connection, chunks) = (stream.tables.connection, row_key::all(stream.row.key));
    connection
        .prepare_cached("DELETE FROM chunks WHERE key BETWEEN ?1 AND ?2")?
        .execute([chunks.start(), chunks.end()])?;
    connection
        .prepare_cached("DELETE FROM discarded WHERE stream = ?1")?
        .execute([stream.row.key])?;
    connection.prepare_cached("DELETE FROM marks WHERE stream = ?1")?.execute([stream.row.key])?;
    stream.row.state.reset();
    stream.row.trimmed = stream.row.state.last_seq;
    stream.save_row()
}

/// Deletes a stream if its info equals `seen`. Returns `false` if it is kept.
pub(super) fn forget_if(
    tables: &mut Tables<'_>,
    session: &SessionId,
    seen: &StreamInfo,
) -> Result<bool, Failure> {
    let info = read::info(tables.connection, session)?;
    if info != *seen && !info.is_empty() {
        return Ok(false);
    }
    forget(tables, session)?;
    Ok(true)
}

/// Deletes a stream and all its rows.
pub(crate) fn forget(tables: &mut Tables<'_>, session: &SessionId) -> Result<(), Failure> {
    reset(tables, session)?;
    let stream = "DELETE FROM streams WHERE session = ?1";
    tables.connection.prepare_cached(stream)?.execute([session.as_str()])?;
    Ok(())
}

/// A stream that is being written to.
struct Stream<'t, 'c> {
    tables: &'t mut Tables<'c>,
    session: &'t SessionId,
    row: StreamRow,
}

impl<'t, 'c> Stream<'t, 'c> {
    fn find(tables: &'t mut Tables<'c>, session: &'t SessionId) -> Result<Self, Failure> {
        let Statements { find, attempts, .. } = &mut tables.streams;
        let decode = |key, text: &str| attempts.take_or_decode(key, session, text);
        let row = StreamRow::find(find.get()?, session, decode)?.unwrap_or_default();
        Ok(Self { tables, session, row })
    }

    /// Loads the watermark of the batch's writer, if the writer is a child session.
    fn load_watermark(&mut self, writer: &SessionId) -> Result<(), Failure> {
        if writer == self.session {
            return Ok(());
        }
        let sql =
            "SELECT version, seq, fencing_token FROM marks WHERE stream = ?1 AND session = ?2";
        let marked = |row: &Row<'_>| {
            Ok(SessionWatermark {
                version: Unsigned::get(row, 0)?,
                seq: Unsigned::get(row, 1)?,
                fencing_token: Unsigned::get(row, 2)?,
            })
        };
        let mut statement = self.tables.connection.prepare_cached(sql)?;
        let marked = statement.query_row(params![self.row.key, writer.as_str()], marked);
        if let Some(marked) = marked.optional()? {
            self.row.state.marked.insert(writer.clone(), marked);
        }
        Ok(())
    }

    /// Saves the changes that have rows of their own. Inserts the stream's row if it does not
    /// exist.
    fn save(&mut self, change: &Change, body: &[u8]) -> Result<(), Failure> {
        let connection = self.tables.connection;
        if self.row.key == 0 {
            self.row.key = StreamRow::begin(connection, self.session)?;
        }
        let key = self.row.key;
        if change.count > 0 {
            let row_key = row_key::new(key, self.row.state.last_seq)?;
            self.tables.streams.add.get()?.execute(params![
                row_key,
                Unsigned(change.count),
                body
            ])?;
        }
        for discarded in &change.discarded {
            connection
                .prepare_cached(
                    "INSERT INTO discarded (stream, attempt, at_seq) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![key, Unsigned(discarded.attempt.0), Unsigned(discarded.ended)])?;
        }
        for child in change.marked.iter().filter(|session| *session != self.session) {
            let marked = self.row.state.marked.get(child).copied().unwrap_or_default();
            connection
                .prepare_cached(
                    "INSERT INTO marks (stream, session, version, seq, fencing_token)
                     VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT DO UPDATE SET version = ?3, seq = ?4, fencing_token = ?5",
                )?
                .execute(params![
                    key,
                    child.as_str(),
                    Unsigned(marked.version),
                    Unsigned(marked.seq),
                    Unsigned(marked.fencing_token)
                ])?;
        }
        Ok(())
    }

    fn save_row(self) -> Result<(), Failure> {
        self.row.save(&mut self.tables.streams, self.session)
    }

    /// Deletes chunks beyond the retention, in whole rows and several at a time.
    fn trim(&mut self, retention: u64) -> Result<(), Failure> {
        let row = &mut self.row;
        let last_seq = row.state.last_seq;
        if last_seq - row.trimmed <= retention.saturating_add(retention / 8) {
            return Ok(());
        }
        let connection = self.tables.connection;
        let (first, last) =
            (row_key::up_to(row.key, 0), row_key::up_to(row.key, last_seq - retention));
        let last: Option<i64> = connection
            .prepare_cached("SELECT max(key) FROM chunks WHERE key BETWEEN ?1 AND ?2")?
            .query_row([first, last], |row| row.get(0))?;
        let Some(last) = last else { return Ok(()) };
        connection
            .prepare_cached("DELETE FROM chunks WHERE key BETWEEN ?1 AND ?2")?
            .execute([first, last])?;
        row.trimmed = row_key::number(last);
        connection
            .prepare_cached("DELETE FROM discarded WHERE stream = ?1 AND at_seq <= ?2")?
            .execute(params![row.key, Unsigned(row.trimmed)])?;
        Ok(())
    }
}
