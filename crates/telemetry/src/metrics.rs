//! Metrics of the work of this process, made from its spans, whether their traces are sampled or not.

mod instruments;
mod reader;

use std::time::Duration;

use helix_agents_core::event::RecordedEvent;
use helix_agents_core::session::Session;
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader as _;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};

use crate::conventions as names;
use crate::options::SpanOptions;
use crate::span::{Span, Value};
use crate::spans::spans;
use instruments::Instruments;
use reader::SharedReader;

/// The attributes of metrics of model calls.
const OF_MODEL: [&str; 5] = [
    names::OPERATION,
    names::PROVIDER,
    names::REQUEST_MODEL,
    names::RESPONSE_MODEL,
    names::ERROR_TYPE,
];

/// The metrics of a process. No attribute has an id of a session, run or call, and none has content.
#[derive(Debug)]
pub(crate) struct Metrics {
    instruments: Instruments,
    reader: SharedReader,
    /// All traces, without content.
    options: SpanOptions,
    /// Keeps the instruments registered with the reader.
    _provider: SdkMeterProvider,
}

impl Metrics {
    /// Creates the instruments. `dropped` returns the number of dropped spans.
    pub(crate) fn new(
        resource: Resource,
        temporality: Temporality,
        dropped: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let reader = SharedReader::new(temporality);
        let provider =
            SdkMeterProvider::builder().with_reader(reader.clone()).with_resource(resource).build();
        let instruments = Instruments::new(&provider.meter("helix-agents"), dropped);
        Self {
            instruments,
            reader,
            options: SpanOptions::default().all_traces(),
            _provider: provider,
        }
    }

    /// Records the operations that these events complete. `session` is the session after their append.
    pub(crate) fn record(&self, session: &Session, events: &[RecordedEvent]) {
        for span in spans(session, events, &self.options) {
            self.record_span(&span);
        }
    }

    fn record_span(&self, span: &Span) {
        let instruments = &self.instruments;
        match span.text(names::OPERATION) {
            Some("chat") => self.record_model_call(span),
            Some("execute_tool") => {
                let tool = [names::TOOL_NAME, names::TOOL_TYPE, names::AGENT, names::ERROR_TYPE];
                instruments.tool_duration.record(seconds(span), &chosen(span, &tool));
                self.record_discarded(span, "tool");
                if span.text(names::ERROR_TYPE) == Some("tool_outcome_unknown") {
                    let call = chosen(span, &[names::AGENT, names::TOOL_NAME]);
                    instruments.calls_in_doubt.add(1, &call);
                }
            }
            // A run whose process stopped has no end of its own.
            Some("invoke_agent") if span.text(names::ERROR_TYPE) == Some(names::LOST) => {
                instruments.takeovers.add(1, &chosen(span, &[names::AGENT]));
            }
            Some("invoke_agent") => {
                let duration = chosen(span, &[names::AGENT, names::ERROR_TYPE]);
                instruments.run_duration.record(seconds(span), &duration);
                let ended = chosen(span, &[names::AGENT, names::STATUS, names::TRIGGER]);
                instruments.runs_ended.add(1, &ended);
            }
            Some("wait") => {
                let wait = chosen(span, &[names::AGENT, names::WAIT_KIND, names::WAIT_OUTCOME]);
                instruments.wait_duration.record(seconds(span), &wait);
            }
            _ => {}
        }
    }

    fn record_model_call(&self, span: &Span) {
        let instruments = &self.instruments;
        let attributes = chosen(span, &OF_MODEL);
        instruments.call_duration.record(seconds(span), &attributes);
        self.record_discarded(span, "model");
        if let Some(Value::Float(first)) = span.attribute(names::TIME_TO_FIRST_CHUNK) {
            instruments.first_chunk.record(*first, &attributes);
        }
        for (name, kind) in [(names::INPUT_TOKENS, "input"), (names::OUTPUT_TOKENS, "output")] {
            if let Some(Value::Int(tokens)) = span.attribute(name)
                && let Ok(tokens) = u64::try_from(*tokens)
            {
                let mut attributes = attributes.clone();
                attributes.push(KeyValue::new(names::TOKEN_TYPE, kind));
                instruments.tokens.record(tokens, &attributes);
            }
        }
        if let Some(Value::Float(cost)) = span.attribute(names::COST) {
            let attributes = [names::AGENT, names::PROVIDER, names::REQUEST_MODEL];
            instruments.cost.add(*cost, &chosen(span, &attributes));
        }
    }

    /// Records the attempts of an operation whose results were not used.
    fn record_discarded(&self, span: &Span, effect: &'static str) {
        let Some(Value::Int(attempts)) = span.attribute(names::ATTEMPTS) else { return };
        let discarded = u64::try_from(attempts - 1).unwrap_or(0);
        if discarded > 0 {
            let mut attributes = chosen(span, &[names::AGENT]);
            attributes.push(KeyValue::new(names::EFFECT, effect));
            self.instruments.attempts_discarded.add(discarded, &attributes);
        }
    }

    /// Records an operation of the store. An error is its code.
    pub(crate) fn record_store_operation(
        &self,
        operation: &'static str,
        took: Duration,
        outcome: Result<&'static str, &'static str>,
    ) {
        let (name, value) = match outcome {
            Ok(outcome) => (names::STORE_OUTCOME, outcome),
            Err(code) => (names::ERROR_TYPE, code),
        };
        let attributes =
            [KeyValue::new(names::STORE_OPERATION, operation), KeyValue::new(name, value)];
        self.instruments.store_duration.record(took.as_secs_f64(), &attributes);
    }

    /// Reads the metrics.
    pub(crate) fn collect(&self) -> Result<ResourceMetrics, OTelSdkError> {
        let mut metrics = ResourceMetrics::default();
        self.reader.collect(&mut metrics)?;
        Ok(metrics)
    }
}

/// Returns the duration of a span, in seconds.
fn seconds(span: &Span) -> f64 {
    let millis = span.end.0.saturating_sub(span.start.0);
    #[expect(clippy::cast_precision_loss, reason = "no operation takes that long")]
    let seconds = millis as f64 / 1000.0;
    seconds.max(0.0)
}

/// Returns the attributes with these names that the span has. They are texts.
fn chosen(span: &Span, names: &[&'static str]) -> Vec<KeyValue> {
    let found = names.iter().filter_map(|name| Some((*name, span.text(name)?)));
    found.map(|(name, text)| KeyValue::new(name, text.to_owned())).collect()
}

#[cfg(test)]
mod tests;
