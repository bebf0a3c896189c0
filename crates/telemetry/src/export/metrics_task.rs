//! The task that exports metrics.

use std::sync::Arc;
use std::time::Duration;

use helix_agents_core::log_events::TARGET;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::send::failure;
use crate::metrics::Metrics;

/// The time limit of an export.
const LIMIT: Duration = Duration::from_secs(30);

/// The time between two warnings about failed exports.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// A request to the task. It answers by dropping the sender.
type Request = oneshot::Sender<()>;

/// The sender of requests to the task. The task ends when it is dropped.
#[derive(Debug)]
pub(super) struct MetricsExport(mpsc::Sender<Request>);

impl MetricsExport {
    /// Exports the metrics at this interval.
    pub(super) fn start(
        metrics: Arc<Metrics>,
        exporter: impl PushMetricExporter,
        interval: Duration,
    ) -> Self {
        let (sender, requests) = mpsc::channel(1);
        tokio::spawn(run(metrics, exporter, interval, requests));
        Self(sender)
    }

    /// Exports the metrics now. Returns once they are exported, or the export has failed.
    pub(super) async fn flush(&self) {
        let (sender, done) = oneshot::channel();
        if self.0.send(sender).await.is_ok() {
            let _answer = done.await;
        }
    }
}

async fn run(
    metrics: Arc<Metrics>,
    exporter: impl PushMetricExporter,
    interval: Duration,
    mut requests: mpsc::Receiver<Request>,
) {
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut warned: Option<Instant> = None;
    loop {
        let request = tokio::select! {
            request = requests.recv() => match request {
                Some(request) => Some(request),
                None => break,
            },
            _ = ticks.tick() => None,
        };
        if let Err(reason) = export(&metrics, &exporter).await
            && warned.is_none_or(|at| at.elapsed() >= WARNING_INTERVAL)
        {
            warned = Some(Instant::now());
            tracing::warn!(target: TARGET, reason, "telemetry.metrics_failed");
        }
        drop(request);
    }
    if let Err(error) = exporter.shutdown() {
        tracing::debug!(%error, "the exporter reported an error at its shutdown");
    }
}

async fn export(metrics: &Metrics, exporter: &impl PushMetricExporter) -> Result<(), String> {
    let collected = metrics.collect().map_err(failure)?;
    match timeout(LIMIT, exporter.export(&collected)).await {
        Ok(exported) => exported.map_err(failure),
        Err(_) => Err("the receiver did not answer in time".to_owned()),
    }
}
