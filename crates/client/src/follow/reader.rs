//! Reads chunks over as many connections as necessary.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use helix_agents_core::id::SessionId;
use helix_agents_core::llm::RetryPolicy;
use helix_agents_core::stream::{ChunkKind, StoredChunk};
use tokio::time::{Instant, sleep_until};

use super::connection::Connection;
use super::event::StreamEvent;
use super::{FollowOptions, StreamEnd};
use crate::error::{ClientError, Result};
use crate::transport::{SharedTransport, jitter};

/// The time after which a connection that delivers no chunk counts as restored, because the server keeps it open.
const STABLE: Duration = Duration::from_secs(10);

/// The state of a follower.
pub(super) struct Reader {
    transport: SharedTransport,
    session: SessionId,
    children: bool,
    /// The sequence number of the next chunk.
    next: u64,
    connection: Option<Connection>,
    /// Decoded events that were not returned yet.
    events: VecDeque<StreamEvent>,
    /// The failure to handle after the events.
    failure: Option<ClientError>,
    outage: Option<Outage>,
    end: Arc<OnceLock<StreamEnd>>,
    has_ended: bool,
}

/// A time without a working connection.
#[derive(Debug, Clone, Copy)]
struct Outage {
    since: Instant,
    failures: u32,
    /// The time of the next attempt.
    until: Instant,
}

impl Reader {
    pub(super) fn new(
        transport: SharedTransport,
        session: SessionId,
        options: FollowOptions,
        end: Arc<OnceLock<StreamEnd>>,
    ) -> Self {
        Self {
            transport,
            session,
            children: options.children,
            next: options.from.max(1),
            connection: None,
            events: VecDeque::new(),
            failure: None,
            outage: None,
            end,
            has_ended: false,
        }
    }

    /// Returns the next chunk, or `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Result<StoredChunk>> {
        loop {
            if self.has_ended {
                return None;
            }
            match self.events.pop_front() {
                Some(StreamEvent::Chunk(chunk)) if self.takes(&chunk) => return Some(Ok(chunk)),
                Some(StreamEvent::Chunk(_)) => continue,
                Some(StreamEvent::Skipped(seq)) => {
                    self.next = self.next.max(seq.saturating_add(1));
                    continue;
                }
                Some(StreamEvent::End(end)) => {
                    self.end.get_or_init(|| end);
                    self.has_ended = true;
                    continue;
                }
                None => {}
            }
            if let Some(error) = self.failure.take() {
                self.connection = None;
                if let Err(error) = self.plan_reconnection(error) {
                    self.has_ended = true;
                    return Some(Err(error));
                }
            }
            if let Err(error) = self.read().await {
                self.failure = Some(error);
            }
        }
    }

    /// Moves the position behind a chunk. Returns `false` for one that was returned before.
    fn takes(&mut self, chunk: &StoredChunk) -> bool {
        self.outage = None;
        // A resync may go back: the session was deleted and created again.
        let is_resync = matches!(chunk.chunk.kind, ChunkKind::StreamResync);
        if chunk.seq < self.next && !is_resync {
            return false;
        }
        self.next = chunk.seq.saturating_add(1);
        true
    }

    /// Reads from the connection, or opens one.
    async fn read(&mut self) -> Result<()> {
        if let Some(outage) = self.outage
            && self.connection.is_none()
        {
            sleep_until(outage.until).await;
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let opened =
                    Connection::open(&self.transport, &self.session, self.next, self.children)
                        .await?;
                self.connection.insert(opened)
            }
        };
        connection.read(&mut self.events).await?;
        if connection.age() >= STABLE {
            self.outage = None;
        }
        Ok(())
    }

    /// Determines when to open the next connection.
    ///
    /// # Errors
    /// Returns the error if it does not pass, or if the outage lasts too long.
    fn plan_reconnection(&mut self, error: ClientError) -> Result<()> {
        if !error.is_retryable() {
            return Err(error);
        }
        let (now, transport) = (Instant::now(), &self.transport);
        let outage = self.outage.unwrap_or(Outage { since: now, failures: 0, until: now });
        let policy: RetryPolicy = transport.limits.policy(u32::MAX);
        let wait = policy.backoff(outage.failures, jitter()).unwrap_or_default();
        let Some(wait) = transport.wait(wait, &error) else { return Err(error) };
        let until = now + wait;
        if until.duration_since(outage.since) > transport.limits.reconnect {
            return Err(error);
        }
        tracing::debug!(session = %self.session, %error, "reconnecting an event stream");
        let failures = outage.failures.saturating_add(1);
        self.outage = Some(Outage { failures, until, ..outage });
        Ok(())
    }
}
