//! One attempt at a model call: send, read, decode.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::llm::{LlmResponse, LlmSink};
use helix_agents_core::usage::Usage;
use reqwest::Response;
use tokio_util::sync::CancellationToken;

use crate::exchange::{BodyKind, Exchange};
use crate::failure::{FailedAttempt, Failure, Redactor, Subject};
use crate::frames::FrameDecoder;
use crate::http::Timeouts;
use crate::sse::{Decoder, OnEvent};

/// The maximum size of a stream event.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// The time to wait for the token counts after a reply has finished.
const TAIL: Duration = Duration::from_secs(5);

/// A reply that is assembled from the data that a server sends. One implementation per wire format.
pub(crate) trait ReplyReader: Default + Send {
    /// Adds the data of an event of a streamed reply.
    fn event(
        &mut self,
        data: &[u8],
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure>;

    /// Adds a reply that is a single JSON document.
    fn document(
        &mut self,
        body: &[u8],
        reading: &Reading<'_>,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure>;

    /// Returns how much of the reply has arrived.
    fn progress(&self) -> Progress;

    /// Returns `true` if the sink has received output, which rules out a retry.
    fn is_delivered(&self) -> bool;

    /// Returns the tokens that the server has reported so far.
    fn usage(&self) -> Usage;

    /// Converts a complete reply into a response.
    fn end(self, reading: &Reading<'_>, sink: &dyn LlmSink) -> Result<LlmResponse, Failure>;
}

/// The progress of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More output may follow.
    Open,
    /// The output is complete. Only token counts may follow.
    Finished,
    /// Nothing follows.
    Done,
}

/// The settings for reading a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) subject: Subject<'a>,
    pub(crate) redactor: Redactor<'a>,
    /// Whether a structured output was requested.
    pub(crate) structured: bool,
    /// The number of messages before the reply.
    pub(crate) messages: usize,
}

/// An attempt at a model call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) timeouts: Timeouts,
    pub(crate) max_reply_bytes: usize,
    /// Whether the request asks for a streamed reply.
    pub(crate) streams: bool,
    pub(crate) reading: Reading<'a>,
    pub(crate) cancel: &'a CancellationToken,
}

impl Attempt<'_> {
    /// Makes the attempt. `sent` is the pending response to its request.
    pub(crate) async fn run<R: ReplyReader>(
        &self,
        sent: impl Future<Output = reqwest::Result<Response>> + Send,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse, FailedAttempt> {
        let mut reply = R::default();
        let read = self.read(sent, &mut reply, sink).await;
        let (delivered, usage) = (reply.is_delivered(), reply.usage());
        let ended = match read {
            Ok(()) => reply.end(&self.reading, sink),
            Err(failure) => Err(failure),
        };
        ended.map_err(|failure| FailedAttempt { failure, delivered, usage })
    }

    async fn read<R: ReplyReader>(
        &self,
        sent: impl Future<Output = reqwest::Result<Response>> + Send,
        reply: &mut R,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let subject = self.reading.subject;
        let mut exchange =
            Exchange::begin(sent, subject, self.timeouts, self.max_reply_bytes, self.cancel)
                .await?;
        if !exchange.status().is_success() {
            let body = exchange.error_body().await?;
            let (status, headers) = (exchange.status(), exchange.headers());
            return Err(subject.status(status, headers, &body, &self.reading.redactor));
        }
        let asked = if self.streams { BodyKind::Events } else { BodyKind::Json };
        // Servers may use the other kind of body; the content type of the response decides.
        match exchange.kind(asked) {
            BodyKind::Events => self.events(&mut exchange, reply, sink).await,
            BodyKind::Frames => self.frames(&mut exchange, reply, sink).await,
            BodyKind::Json => {
                let body = exchange.body().await?;
                reply.document(&body, &self.reading, sink)
            }
            BodyKind::Page => Err(subject.protocol("sent a web page instead of a reply")),
        }
    }

    async fn events<R: ReplyReader>(
        &self,
        exchange: &mut Exchange<'_>,
        reply: &mut R,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let mut decoder = Decoder::new(MAX_EVENT_BYTES);
        let mut hurried = false;
        while reply.progress() != Progress::Done {
            let piece = match exchange.next().await {
                Ok(piece) => piece,
                // Only token counts could be missing now.
                Err(failure) if is_loss(&failure) && reply.progress() == Progress::Finished => {
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            };
            let Some(piece) = piece else {
                return self.end_of_stream(&mut decoder, reply, sink);
            };
            self.decode(reply, sink, |on_event| decoder.feed(&piece, on_event))?;
            if reply.progress() == Progress::Finished && !hurried {
                hurried = true;
                exchange.hurry(TAIL);
            }
        }
        exchange.drain().await;
        Ok(())
    }

    async fn frames<R: ReplyReader>(
        &self,
        exchange: &mut Exchange<'_>,
        reply: &mut R,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let mut decoder = FrameDecoder::new(MAX_EVENT_BYTES);
        let mut hurried = false;
        while reply.progress() != Progress::Done {
            let is_finished = reply.progress() == Progress::Finished;
            if is_finished && !hurried {
                hurried = true;
                exchange.hurry(TAIL);
            }
            let piece = match exchange.next().await {
                Ok(Some(piece)) => piece,
                // Only token counts could be missing now.
                Ok(None) if is_finished => return Ok(()),
                Err(failure) if is_loss(&failure) && is_finished => return Ok(()),
                Ok(None) => return Err(self.reading.subject.cut(None)),
                Err(failure) => return Err(failure),
            };
            decoder.feed(&piece, |event| reply.event(event, &self.reading, sink))?;
        }
        exchange.drain().await;
        Ok(())
    }

    /// Handles the end of the connection without an end event, which is valid only after a finish
    /// reason.
    fn end_of_stream<R: ReplyReader>(
        &self,
        decoder: &mut Decoder,
        reply: &mut R,
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
        if reply.progress() != Progress::Open {
            return Ok(());
        }
        Err(self.reading.subject.cut(None))
    }

    /// Runs the decoder and passes its events to the reply.
    fn decode<R: ReplyReader>(
        &self,
        reply: &mut R,
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
