//! The queue between runs and the task that exports.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use helix_agents_core::log_events::TARGET;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

use crate::span::Span;

/// The time between two warnings about dropped spans.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// The longest grace period.
const MAX_GRACE: Duration = Duration::from_secs(60 * 60);

/// A message to the task.
#[derive(Debug)]
pub(super) enum Message {
    /// Spans to export.
    Spans(Vec<Span>),
    /// Export all spans before this message, and then drop the sender.
    Flush(oneshot::Sender<()>),
    /// As for a flush, and then end.
    Shutdown(oneshot::Sender<()>),
}

/// The sending side. The channel is unbounded, but the counts bound the spans in it.
#[derive(Debug)]
pub(super) struct Queue {
    sender: UnboundedSender<Message>,
    /// The end of the grace period, once the queue is shut down.
    deadline: watch::Sender<Option<Instant>>,
    /// Fails once the task has ended.
    ended: watch::Receiver<()>,
    counts: Arc<Counts>,
    max_spans: usize,
    max_bytes: usize,
}

/// The receiving side.
#[derive(Debug)]
pub(super) struct TaskEnd {
    pub(super) received: UnboundedReceiver<Message>,
    /// The end of the grace period, once the queue is shut down.
    pub(super) grace_end: watch::Receiver<Option<Instant>>,
    pub(super) counts: Arc<Counts>,
    /// Dropped when the task has ended.
    _running: watch::Sender<()>,
}

/// Counts of spans.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// The number of spans in the queue and in the batch of the task.
    queued_spans: AtomicUsize,
    queued_bytes: AtomicUsize,
    exported: AtomicU64,
    dropped: AtomicU64,
    /// The time of the last warning.
    warned: Mutex<Option<Instant>>,
}

impl Queue {
    /// Creates the queue and what the task needs.
    pub(super) fn new(max_spans: usize, max_bytes: usize) -> (Self, TaskEnd) {
        let (sender, received) = unbounded_channel();
        let (deadline, grace_end) = watch::channel(None);
        let (running, ended) = watch::channel(());
        let counts = Arc::<Counts>::default();
        let task = TaskEnd { received, grace_end, counts: Arc::clone(&counts), _running: running };
        (Self { sender, deadline, ended, counts, max_spans, max_bytes }, task)
    }

    /// Returns the counts.
    pub(super) fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    pub(super) fn exported(&self) -> u64 {
        self.counts.exported.load(Ordering::Relaxed)
    }

    pub(super) fn dropped(&self) -> u64 {
        self.counts.dropped()
    }

    /// Adds the spans of an append, or drops them if the queue is full or closed.
    pub(super) fn push(&self, spans: Vec<Span>) {
        let (count, bytes) = (spans.len(), spans.iter().map(Span::bytes).sum());
        let counts = &self.counts;
        if !reserve(&counts.queued_spans, count, self.max_spans) {
            counts.count_dropped(count, "the queue is full");
        } else if !reserve(&counts.queued_bytes, bytes, self.max_bytes) {
            counts.release(count, 0);
            counts.count_dropped(count, "the queue is full");
        } else if self.sender.send(Message::Spans(spans)).is_err() {
            counts.release(count, bytes);
            counts.count_dropped(count, "the export has ended");
        }
    }

    /// Waits until the spans in the queue are exported or dropped.
    pub(super) async fn flush(&self) {
        let (sender, done) = oneshot::channel();
        self.send_and_wait(Message::Flush(sender), done).await;
    }

    /// Ends the task. A task whose exporter blocks its thread past the grace period is not waited for.
    pub(super) async fn shutdown(&self, grace: Duration) {
        let (sender, done) = oneshot::channel();
        let grace = grace.min(MAX_GRACE);
        self.deadline.send_replace(Some(Instant::now() + grace));
        let ended = self.send_and_wait(Message::Shutdown(sender), done);
        if timeout(grace + Duration::from_secs(1), ended).await.is_err() {
            tracing::warn!("the exporter of spans does not stop");
        }
    }

    /// Sends a request and waits until it is done. If the task does not receive it, waits until the task has ended.
    async fn send_and_wait(&self, request: Message, done: oneshot::Receiver<()>) {
        if self.sender.send(request).is_ok() {
            // The task answers by dropping the sender.
            let _answer = done.await;
        } else {
            let _error = self.ended.clone().changed().await;
        }
    }
}

/// Adds to a number, unless it would exceed the limit.
fn reserve(number: &AtomicUsize, more: usize, limit: usize) -> bool {
    let add = |now: usize| now.checked_add(more).filter(|sum| *sum <= limit);
    number.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
}

impl Counts {
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn count_exported(&self, count: usize, bytes: usize) {
        self.release(count, bytes);
        self.exported.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Counts spans that left the queue without being exported.
    pub(super) fn count_failed(&self, count: usize, bytes: usize, reason: &str) {
        self.release(count, bytes);
        self.count_dropped(count, reason);
    }

    /// Counts dropped spans, and warns at most once a minute.
    fn count_dropped(&self, count: usize, reason: &str) {
        let dropped = self.dropped.fetch_add(count as u64, Ordering::Relaxed) + count as u64;
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL) {
            *warned = Some(Instant::now());
            tracing::warn!(target: TARGET, dropped, reason = %reason, "telemetry.dropped");
        }
    }

    fn release(&self, count: usize, bytes: usize) {
        self.queued_spans.fetch_sub(count, Ordering::Relaxed);
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}
