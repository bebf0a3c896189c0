//! One connection to `/sse`.

use std::collections::VecDeque;
use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::id::SessionId;
use helix_agents_sse::Decoder;
use reqwest::Response;
use tokio::time::{Instant, timeout};

use super::event::{StreamEvent, decode};
use crate::error::{ClientError, Result};
use crate::transport::{Request, Transport};

/// An open event stream.
#[derive(Debug)]
pub(super) struct Connection {
    response: Response,
    decoder: Decoder,
    opened: Instant,
    silence: Duration,
}

impl Connection {
    /// Opens the stream at a chunk.
    pub(super) async fn open(
        transport: &Transport,
        session: &SessionId,
        from: u64,
        children: bool,
    ) -> Result<Self> {
        let request = Request::get(&["sse"])
            .query("sessionId", Some(session))
            .query("from", Some(from))
            .query("children", (!children).then_some(0));
        Ok(Self {
            response: transport.events(&request).await?,
            decoder: Decoder::new(transport.limits.event_bytes),
            opened: Instant::now(),
            silence: transport.timeouts.silence,
        })
    }

    /// Returns the time since which the connection exists.
    pub(super) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    /// Waits for bytes and adds the events that they complete.
    ///
    /// # Errors
    /// Returns an error if the connection breaks, ends or is silent for too long, and if an event is invalid. The events
    /// before it are added.
    ///
    /// # Cancel safety
    /// Dropping the future loses no bytes.
    pub(super) async fn read(&mut self, events: &mut VecDeque<StreamEvent>) -> Result<()> {
        let read = timeout(self.silence, self.response.chunk()).await.map_err(|_| {
            ClientError::new(
                ErrorCode::ServerUnreachable,
                "the event stream is silent, without even a comment",
            )
        })?;
        let Some(bytes) = read.map_err(ClientError::transport)? else {
            let message = "the event stream ended without its last event";
            return Err(ClientError::new(ErrorCode::ServerUnreachable, message));
        };
        let mut invalid = None;
        let fed = self.decoder.feed::<Error>(&bytes, &mut |event| {
            match decode(event) {
                _ if invalid.is_some() => {}
                Ok(event) => events.extend(event),
                Err(error) => invalid = Some(error),
            }
            Ok(())
        });
        if let Some(error) = invalid {
            return Err(error);
        }
        fed.map_err(|error| {
            let message = "an event of the stream exceeds the client's limit";
            ClientError::new(ErrorCode::ServerProtocol, message).with_source(error)
        })
    }
}
