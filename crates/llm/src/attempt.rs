//! One attempt at a model call: send, read, decode.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::error::ErrorCode;
use helix_agents_core::llm::{LlmResponse, LlmSink};
use helix_agents_core::usage::Usage;
use helix_agents_sse::Decoder;
use reqwest::Response;
use tokio_util::sync::CancellationToken;

use crate::exchange::{BodyKind, Exchange};
use crate::failure::{FailedAttempt, Failure, Redactor, Subject};
use crate::frames::FrameDecoder;
use crate::http::Timeouts;

/// The maximum size of a stream event.
const MAX_EVENT_BYTES: usize = 8 * 1024 * 1024;

/// The time to wait for the token counts after a reply has finished.
const TAIL: Duration = Duration::from_secs(5);

/// A reply that is assembled from the data that a server sends. One implementation per wire format.
pub(crate) trait ReplyReader: Send {
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

    /// Returns `true` if a finished reply has all of its output, so that a lost connection does not
    /// matter.
    fn is_whole(&self) -> bool {
        true
    }

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
    /// The reason why the model stopped has arrived. Token counts may follow, and on some servers
    /// the rest of the output.
    Finished,
    /// Nothing follows.
    Done,
}

/// The settings for reading a reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) subject: Subject<'a>,
    /// The owner of the data in the reply.
    pub(crate) data_owner: &'a Arc<str>,
    pub(crate) redactor: Redactor<'a>,
    /// Whether a structured output was requested.
    pub(crate) structured: bool,
    /// The number of messages before the reply.
    pub(crate) messages: usize,
}

/// The callback that receives the data of each event.
type OnEvent<'a> = dyn FnMut(&[u8]) -> Result<(), Failure> + Send + 'a;

/// A decoder of the body of a streamed reply.
trait StreamDecoder: Send {
    /// Decodes the next bytes.
    fn feed(&mut self, piece: &[u8], on_event: &mut OnEvent<'_>) -> Result<(), Failure>;

    /// Passes on an event that lacks only its end.
    fn finish(&mut self, on_event: &mut OnEvent<'_>) -> Result<(), Failure>;
}

impl StreamDecoder for Decoder {
    fn feed(&mut self, piece: &[u8], on_event: &mut OnEvent<'_>) -> Result<(), Failure> {
        self.feed(piece, &mut |event| on_event(event.data))
    }

    fn finish(&mut self, on_event: &mut OnEvent<'_>) -> Result<(), Failure> {
        self.finish(&mut |event| on_event(event.data))
    }
}

impl StreamDecoder for FrameDecoder {
    fn feed(&mut self, piece: &[u8], on_event: &mut OnEvent<'_>) -> Result<(), Failure> {
        self.feed(piece, on_event)
    }

    /// Does nothing, because a frame states its length.
    fn finish(&mut self, _: &mut OnEvent<'_>) -> Result<(), Failure> {
        Ok(())
    }
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
    /// Makes the attempt. `sent` is the pending response to its request, and `reply` is empty.
    pub(crate) async fn run(
        &self,
        mut reply: impl ReplyReader,
        sent: impl Future<Output = reqwest::Result<Response>> + Send,
        sink: &dyn LlmSink,
    ) -> Result<LlmResponse, FailedAttempt> {
        let read = self.read(sent, &mut reply, sink).await;
        let (delivered, usage) = (reply.is_delivered(), reply.usage());
        let ended = match read {
            Ok(()) => reply.end(&self.reading, sink),
            Err(failure) => Err(failure),
        };
        ended.map_err(|failure| FailedAttempt { failure, delivered, usage })
    }

    async fn read(
        &self,
        sent: impl Future<Output = reqwest::Result<Response>> + Send,
        reply: &mut impl ReplyReader,
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
        match exchange.body_kind(asked) {
            BodyKind::Events => {
                let decoder = Decoder::new(MAX_EVENT_BYTES);
                self.stream(decoder, &mut exchange, reply, sink).await
            }
            BodyKind::Frames => {
                let decoder = FrameDecoder::new(MAX_EVENT_BYTES);
                self.stream(decoder, &mut exchange, reply, sink).await
            }
            BodyKind::Json => {
                let body = exchange.body().await?;
                reply.document(&body, &self.reading, sink)
            }
            BodyKind::Page => Err(subject.protocol("sent a web page instead of a reply")),
        }
    }

    async fn stream(
        &self,
        mut decoder: impl StreamDecoder,
        exchange: &mut Exchange<'_>,
        reply: &mut impl ReplyReader,
        sink: &dyn LlmSink,
    ) -> Result<(), Failure> {
        let mut hurried = false;
        while reply.progress() != Progress::Done {
            let is_finished = reply.progress() == Progress::Finished;
            if is_finished && !hurried {
                hurried = true;
                exchange.hurry(TAIL);
            }
            let piece = match exchange.next().await {
                Ok(piece) => piece,
                // Only token counts could be missing now.
                Err(failure) if is_loss(&failure) && is_finished && reply.is_whole() => {
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            };
            let mut on_event = |data: &[u8]| reply.event(data, &self.reading, sink);
            let Some(piece) = piece else {
                let ended = decoder.finish(&mut on_event);
                return self.end_of_stream(ended, reply.progress());
            };
            decoder.feed(&piece, &mut on_event)?;
        }
        exchange.drain().await;
        Ok(())
    }

    /// Handles the end of the connection without an end event, which is valid only after a finish
    /// reason. `ended` is the result of decoding the last event, which may lack its blank line.
    fn end_of_stream(&self, ended: Result<(), Failure>, progress: Progress) -> Result<(), Failure> {
        match ended {
            // A partial event does not parse, but the early end is the actual problem.
            Err(failure) if failure.error.code() != ErrorCode::ProviderProtocol => Err(failure),
            _ if progress == Progress::Open => Err(self.reading.subject.cut(None)),
            _ => Ok(()),
        }
    }
}

/// Returns `true` if the connection was lost or the server stopped responding.
fn is_loss(failure: &Failure) -> bool {
    matches!(failure.error.code(), ErrorCode::ProviderStreamCut | ErrorCode::ProviderTimeout)
}
