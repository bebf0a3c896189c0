//! One attempt at a model call: send, read, decode.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::llm::{LlmRequest, LlmResponse, LlmSink};
use reqwest::RequestBuilder;
use tokio_util::sync::CancellationToken;

use super::Inner;
use super::reply::{Reading, Reply};
use super::request::RequestBody;
use crate::exchange::{BodyKind, Exchange};
use crate::failure::{FailedAttempt, Failure, Redactor, Subject};
use crate::sse::{Decoder, OnEvent};

/// The maximum size of a stream event.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// How long to wait for the token counts after a reply has finished.
const TAIL: Duration = Duration::from_secs(5);

/// An attempt at a model call.
#[derive(Debug)]
pub(super) struct Attempt<'a> {
    server: &'a Inner,
    streams: bool,
    reading: Reading<'a>,
    cancel: &'a CancellationToken,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        server: &'a Inner,
        subject: Subject<'a>,
        request: &LlmRequest<'a>,
        body: &'a RequestBody,
    ) -> Self {
        let reading = Reading {
            subject,
            redactor: Redactor { key: server.key(), conversation: body.conversation() },
            structured: request.output_schema.is_some(),
            messages: request.messages.len(),
        };
        Self { server, streams: body.streams, reading, cancel: request.cancel }
    }

    /// Makes the attempt.
    pub(super) async fn run(
        &self,
        http: RequestBuilder,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse, FailedAttempt> {
        let mut reply = Reply::default();
        let read = match self.read(http, &mut reply, sink).await {
            Err(failure) => Err(failure),
            Ok(()) => {
                let delivered = reply.delivered;
                let ended = reply.end(&self.reading, sink);
                return ended.map_err(|failure| FailedAttempt { failure, delivered });
            }
        };
        read.map_err(|failure| FailedAttempt { failure, delivered: reply.delivered })
    }

    async fn read(
        &self,
        http: RequestBuilder,
        reply: &mut Reply,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let options = &self.server.options;
        let subject = self.reading.subject;
        let mut exchange =
            Exchange::begin(http, subject, options.timeouts, options.max_reply_bytes, self.cancel)
                .await?;
        if !exchange.status().is_success() {
            let body = exchange.error_body().await?;
            let (status, headers) = (exchange.status(), exchange.headers());
            return Err(subject.status(status, headers, &body, &self.reading.redactor));
        }
        let asked = if self.streams { BodyKind::Events } else { BodyKind::Json };
        // Servers may use the other kind of body; the content type of the response decides.
        match exchange.kind(asked) {
            BodyKind::Events => self.events(exchange, reply, sink).await,
            BodyKind::Json => {
                let body = exchange.body().await?;
                reply.document(&body, &self.reading, sink)
            }
            BodyKind::Page => Err(subject.protocol("sent a web page instead of a reply")),
        }
    }

    async fn events(
        &self,
        mut exchange: Exchange<'_>,
        reply: &mut Reply,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let mut decoder = Decoder::new(MAX_EVENT_BYTES);
        let mut hurried = false;
        while !reply.done {
            let piece = match exchange.next().await {
                Ok(piece) => piece,
                // Only token counts could be missing now.
                Err(failure) if is_loss(&failure) && reply.is_finished() => return Ok(()),
                Err(failure) => return Err(failure),
            };
            let Some(piece) = piece else {
                return self.end_of_stream(&mut decoder, reply, sink);
            };
            self.decode(reply, sink, |on_event| decoder.feed(&piece, on_event))?;
            if reply.is_finished() && !hurried {
                hurried = true;
                exchange.hurry(TAIL);
            }
        }
        exchange.drain().await;
        Ok(())
    }

    /// Handles the end of the connection without an end event, which is valid only after a finish
    /// reason.
    fn end_of_stream(
        &self,
        decoder: &mut Decoder,
        reply: &mut Reply,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        // The last event may lack its blank line. A partial event does not parse, but the early end
        // is the actual problem.
        match self.decode(reply, sink, |on_event| decoder.finish(on_event)) {
            Err(failure) if failure.error.code() != ErrorCode::ProviderProtocol => {
                return Err(failure);
            }
            _ => {}
        }
        if reply.done || reply.is_finished() {
            return Ok(());
        }
        Err(self.reading.subject.cut(None))
    }

    /// Runs the decoder and passes its events to the reply.
    fn decode(
        &self,
        reply: &mut Reply,
        sink: &dyn LlmSink,
        run: impl FnOnce(&mut OnEvent<'_>) -> Result<(), Error>,
    ) -> Result<(), Failure> {
        let mut failed = None;
        let ran = run(&mut |event| {
            reply.event(event.data, &self.reading, sink).map_err(|failure| {
                let stop = Error::new(failure.error.code(), "the event failed");
                failed = Some(failure);
                stop
            })
        });
        match failed {
            Some(failure) => Err(failure),
            None => ran.map_err(Failure::from),
        }
    }
}

/// Returns `true` if the connection was lost or the server stopped responding.
fn is_loss(failure: &Failure) -> bool {
    matches!(failure.error.code(), ErrorCode::ProviderStreamCut | ErrorCode::ProviderTimeout)
}
