//! A process-wide `tracing` subscriber that keeps the lines with certain markers.

use std::error::Error;
use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static WATCH: OnceLock<Watch> = OnceLock::new();

/// The log lines of this process, of every level, that contain a watched marker.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    markers: Mutex<Vec<String>>,
    found: Mutex<Vec<String>>,
    events: AtomicU64,
    spans: AtomicU64,
}

/// Watches for a marker from now on, in all threads of the process.
///
/// # Panics
/// If the process has another subscriber.
pub(crate) fn watch(marker: &str) -> &'static Watch {
    let watch = WATCH.get_or_init(|| {
        tracing::subscriber::set_global_default(Collector).unwrap();
        Watch::default()
    });
    lock(&watch.markers).push(marker.to_owned());
    // Shows that events reach the subscriber.
    tracing::trace!("watching");
    watch
}

impl Watch {
    /// Returns the lines that contain the marker.
    pub(crate) fn lines(&self, marker: &str) -> Vec<String> {
        lock(&self.found).iter().filter(|line| line.contains(marker)).cloned().collect()
    }

    /// Returns the number of all logged events.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    fn take(&self, line: Line) {
        self.events.fetch_add(1, Ordering::Relaxed);
        if lock(&self.markers).iter().any(|marker| line.0.contains(marker)) {
            lock(&self.found).push(line.0);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut line = Line::of(span.metadata());
        span.record(&mut line);
        let id = WATCH.get().map_or(0, |watch| {
            watch.take(line);
            watch.spans.fetch_add(1, Ordering::Relaxed)
        });
        Id::from_u64(id + 1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = Line(String::new());
        values.record(&mut line);
        if let Some(watch) = WATCH.get() {
            watch.take(line);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::of(event.metadata());
        event.record(&mut line);
        if let Some(watch) = WATCH.get() {
            watch.take(line);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The content of an event, in every form in which a subscriber may print it.
struct Line(String);

impl Line {
    fn of(metadata: &Metadata<'_>) -> Self {
        Self(format!("{} {}", metadata.level(), metadata.target()))
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _infallible = write!(self.0, " {field}={value:?}");
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let _infallible = write!(self.0, " {field}={value} {value:?} {value:#?}");
        for cause in std::iter::successors(value.source(), |cause| (*cause).source()) {
            let _infallible = write!(self.0, " {cause}");
        }
    }
}
