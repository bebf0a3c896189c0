//! The task that exports spans.

use std::time::Duration;

use opentelemetry_sdk::trace::SpanExporter;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::convert::span_data;
use super::queue::{Message, TaskEnd};
use super::send::export;
use crate::span::Span;

/// The time that a span waits for others, at most.
const INTERVAL: Duration = Duration::from_secs(2);

/// The size of a batch.
pub(super) const BATCH_SPANS: usize = 512;

/// The size of a batch, in bytes: receivers refuse large requests.
pub(super) const BATCH_BYTES: usize = 1024 * 1024;

/// The time limit of the export of one batch, including the exporter's retries.
pub(crate) const EXPORT_TIMEOUT: Duration = Duration::from_secs(60);

/// The task that exports spans.
pub(super) struct Task<E> {
    exporter: E,
    queue: TaskEnd,
    batch: Vec<Span>,
    bytes: usize,
    /// The time at which the batch is exported.
    due: Option<Instant>,
}

impl<E: SpanExporter> Task<E> {
    pub(super) fn new(exporter: E, queue: TaskEnd) -> Self {
        Self { exporter, queue, batch: Vec::new(), bytes: 0, due: None }
    }

    /// Exports spans until the queue is shut down or dropped.
    pub(super) async fn run(mut self) {
        // Dropped at the end, which answers the callers.
        let mut callers = Vec::new();
        loop {
            let received = self.queue.received.recv();
            let message = match self.due {
                Some(due) => timeout_at(due, received).await,
                None => Ok(received.await),
            };
            match message {
                Ok(Some(Message::Spans(spans))) => self.add(spans).await,
                Ok(Some(Message::Flush(caller))) => {
                    self.export().await;
                    drop(caller);
                }
                Ok(Some(Message::Shutdown(caller))) => {
                    callers.push(caller);
                    break;
                }
                Ok(None) => break,
                // The batch is due.
                Err(_) => self.export().await,
            }
        }
        self.queue.received.close();
        while let Some(message) = self.queue.received.recv().await {
            match message {
                Message::Spans(spans) => self.add(spans).await,
                Message::Flush(caller) | Message::Shutdown(caller) => callers.push(caller),
            }
        }
        self.export().await;
        if let Err(error) = self.exporter.shutdown() {
            tracing::debug!(%error, "the exporter reported an error at its shutdown");
        }
    }

    /// Adds spans, and exports the batch whenever it is full.
    async fn add(&mut self, spans: Vec<Span>) {
        for span in spans {
            let bytes = span.bytes();
            if self.batch.len() >= BATCH_SPANS || self.bytes + bytes > BATCH_BYTES {
                self.export().await;
            }
            self.batch.push(span);
            self.bytes += bytes;
            self.due.get_or_insert_with(|| Instant::now() + INTERVAL);
        }
    }

    /// Exports the batch, or drops it if the export fails or the grace period ends.
    async fn export(&mut self) {
        self.due = None;
        if self.batch.is_empty() {
            return;
        }
        let (count, bytes) = (self.batch.len(), std::mem::take(&mut self.bytes));
        let batch = std::mem::take(&mut self.batch).into_iter().map(span_data).collect();
        let exported = tokio::select! {
            biased;
            exported = export(&self.exporter, batch, EXPORT_TIMEOUT) => exported,
            () = end_of_grace(&mut self.queue.grace_end) => Err("the grace period ended".to_owned()),
        };
        match exported {
            Ok(()) => self.queue.counts.count_exported(count, bytes),
            Err(reason) => self.queue.counts.count_failed(count, bytes, &reason),
        }
    }
}

/// Waits until the grace period of a shutdown ends. Without a shutdown, this does not return.
async fn end_of_grace(deadline: &mut watch::Receiver<Option<Instant>>) {
    let known = deadline.wait_for(Option::is_some).await.map(|known| *known);
    match known {
        Ok(Some(deadline)) => sleep_until(deadline).await,
        // The queue was dropped without a shutdown: the export ends by its own time limit.
        _ => std::future::pending().await,
    }
}
