//! The export of spans outside of the queue.

use std::time::Duration;

use helix_agents_core::error::{Error, ErrorCode, Result};
use helix_agents_core::text::excerpt_of;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use tokio::time::timeout;

use super::convert::span_data;
use super::task::{BATCH_BYTES, BATCH_SPANS};
use crate::span::Span;

/// The length up to which an exporter's error is reported, in bytes.
const MAX_ERROR: usize = 200;

/// Exports a batch within a time limit. An error is the reason.
pub(crate) async fn export<E: SpanExporter>(
    exporter: &E,
    batch: Vec<SpanData>,
    limit: Duration,
) -> Result<(), String> {
    match timeout(limit, exporter.export(batch)).await {
        Ok(exported) => exported.map_err(failure),
        Err(_) => Err("the receiver did not answer in time".to_owned()),
    }
}

/// Exports spans in batches, one after the other. Each batch has the time limit.
pub(crate) async fn send<E: SpanExporter>(
    exporter: &E,
    spans: Vec<Span>,
    limit: Duration,
) -> Result<()> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for span in spans {
        let size = span.bytes();
        if batch.len() >= BATCH_SPANS || bytes + size > BATCH_BYTES {
            export(exporter, std::mem::take(&mut batch), limit)
                .await
                .map_err(|reason| failed(&reason))?;
            bytes = 0;
        }
        batch.push(span_data(span));
        bytes += size;
    }
    if batch.is_empty() {
        return Ok(());
    }
    export(exporter, batch, limit).await.map_err(|reason| failed(&reason))
}

/// Returns the text of an exporter's error.
pub(super) fn failure(error: OTelSdkError) -> String {
    excerpt_of(error, MAX_ERROR)
}

/// Returns the error for a reason.
pub(crate) fn failed(reason: &str) -> Error {
    Error::new(
        ErrorCode::TelemetryFailed,
        format!("the receiver did not accept the export: {reason}"),
    )
}
