//! The state of a stream: its own key and the watermarks of child sessions.

use helix_agents_core::error::Result;
use helix_agents_core::id::SessionId;
use helix_agents_core::stream::{
    BatchPosition, CachedStream, SessionWatermark, StreamLookup, StreamState, decode_open,
};

use crate::error::corrupt;
use crate::reply::Reply;
use crate::{Inner, script};

/// Reads the state of a stream, and whether these places exist in it.
pub(super) async fn lookup(
    inner: &Inner,
    session: &SessionId,
    places: &[BatchPosition],
) -> Result<StreamLookup> {
    let [feed, chunks, _, marks, _] = inner.keys.of(session).stream();
    let ids: Vec<String> =
        places.iter().map(|place| format!("{}-{}", place.last_seq, place.revision)).collect();
    let ids: Vec<&[u8]> = ids.iter().map(String::as_bytes).collect();
    let mut reply = inner.server.eval(&script::STREAM_LOOK, &[feed, chunks, marks], &ids).await?;
    let mut found_places = Vec::new();
    for place in places {
        if reply.number::<u64>()? > 0 {
            found_places.push(*place);
        }
    }
    Ok(StreamLookup { known: read(&mut reply, session)?, found_places })
}

/// Parses the state of a stream.
pub(super) fn read(reply: &mut Reply, session: &SessionId) -> Result<CachedStream> {
    if reply.is_empty() {
        return Ok(CachedStream::default());
    }
    let (revision, trimmed) = (reply.number()?, reply.number()?);
    let (last_seq, last_attempt) = (reply.number()?, reply.number()?);
    let own = SessionWatermark {
        version: reply.number()?,
        seq: reply.number()?,
        fencing_token: reply.number()?,
    };
    let open = decode_open(session, &reply.text()?)
        .ok_or_else(|| corrupt(session, "the attempts of the stream are unreadable"))?;
    let mut state = StreamState { last_seq, last_attempt, open, ..StreamState::default() };
    if own != SessionWatermark::default() {
        state.marked.insert(session.clone(), own);
    }
    while !reply.is_empty() {
        let (child, text) = (SessionId::from(reply.text()?), reply.text()?);
        let mut numbers = text.split(' ').map(str::parse);
        let mut number = || numbers.next()?.ok();
        let marked = (|| {
            Some(SessionWatermark {
                version: number()?,
                seq: number()?,
                fencing_token: number().unwrap_or(0),
            })
        })();
        let damaged = || corrupt(session, "the watermarks of the stream are unreadable");
        state.marked.insert(child, marked.ok_or_else(damaged)?);
    }
    Ok(CachedStream { revision, trimmed, state })
}
