//! Events with their envelopes, and the encoding of event batches.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Event, SCHEMA};
use crate::clock::Timestamp;
use crate::error::{Error, ErrorCode, Result};
use crate::id::{RunId, SessionId};
use crate::store::StoredAppend;

/// An event with its envelope, as read from the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedEvent {
    /// The event's sequence number in the log, from 1.
    pub seq: u64,
    /// The time of the append, by the store's clock. For an imported log, the time in the original
    /// store.
    pub at: Timestamp,
    /// The run that wrote the event. `None` for requests from outside a run.
    pub run: Option<RunId>,
    /// The schema number that the event was written with.
    pub schema: u16,
    /// The event.
    pub event: Event,
}

/// Events of an imported log with their original times.
#[derive(Serialize, Deserialize)]
struct Dated<E> {
    at: Vec<Timestamp>,
    events: Vec<E>,
}

/// Encodes a batch of events as the body of one append.
///
/// # Errors
/// Returns [`ErrorCode::Internal`] if an event cannot be written as JSON.
pub fn encode(events: &[Event]) -> Result<Bytes> {
    write(&events)
}

/// Encodes a batch of events together with the time of each event.
pub(crate) fn encode_dated(recorded: &[RecordedEvent]) -> Result<Bytes> {
    let at = recorded.iter().map(|recorded| recorded.at).collect();
    let events = recorded.iter().map(|recorded| &recorded.event).collect();
    write(&Dated { at, events })
}

/// Appends the encoding of one event, without the brackets of the batch.
pub(crate) fn encode_into(bytes: &mut Vec<u8>, event: &Event) -> Result<()> {
    write_into(bytes, event)
}

fn write(batch: &impl Serialize) -> Result<Bytes> {
    // Most appends fit into this size.
    let mut bytes = Vec::with_capacity(512);
    write_into(&mut bytes, batch)?;
    Ok(bytes.into())
}

fn write_into(bytes: &mut Vec<u8>, value: &impl Serialize) -> Result<()> {
    serde_json::to_writer(bytes, value).map_err(|error| {
        Error::new(ErrorCode::Internal, "an event cannot be written as JSON").with_source(error)
    })
}

/// Decodes the events of one append, with their envelopes.
///
/// # Errors
/// Returns [`ErrorCode::SchemaUnknown`] if this build does not know the schema or one of the
/// events; [`ErrorCode::LogInvalid`] if the body was not written by [`encode`].
pub fn decode(session: &SessionId, append: &StoredAppend) -> Result<Vec<RecordedEvent>> {
    if append.schema > SCHEMA {
        return Err(Error::new(
            ErrorCode::SchemaUnknown,
            "the log was written by a newer version; upgrade this program to read it",
        )
        .with_context("session", session)
        .with_context("schema", append.schema));
    }
    let batch = read(&append.body, append.at).map_err(|error| {
        let unknown = error.to_string().contains("unknown variant");
        let (code, message) = if unknown {
            (ErrorCode::SchemaUnknown, "the log holds an event that this version does not know")
        } else {
            (ErrorCode::LogInvalid, "an append of the log cannot be read")
        };
        // The parser's message is not included, because it may quote the log.
        Error::new(code, message)
            .with_context("session", session)
            .with_context("first", append.first)
            .with_context("column", error.column())
    })?;
    if batch.events.len() != append.count as usize || batch.at.len() != batch.events.len() {
        return Err(Error::new(
            ErrorCode::LogInvalid,
            "the number of events differs from the append's count",
        )
        .with_context("session", session)
        .with_context("first", append.first));
    }
    Ok((append.first..)
        .zip(batch.at)
        .zip(batch.events)
        .map(|((seq, at), event)| RecordedEvent {
            seq,
            at,
            run: append.run.clone(),
            schema: append.schema,
            event,
        })
        .collect())
}

fn read(body: &[u8], at: Timestamp) -> serde_json::Result<Dated<Event>> {
    if body.starts_with(b"{") {
        return serde_json::from_slice(body);
    }
    let events: Vec<Event> = serde_json::from_slice(body)?;
    Ok(Dated { at: vec![at; events.len()], events })
}
