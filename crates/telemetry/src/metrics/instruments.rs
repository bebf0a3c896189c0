//! The instruments: their names, units and histogram bounds.

use opentelemetry::metrics::{Counter, Histogram, Meter, ObservableCounter};

/// The names of all metrics.
#[cfg(test)]
pub(crate) const METRICS: [&str; 13] = [
    CALL_DURATION,
    TOKENS,
    FIRST_CHUNK,
    TOOL_DURATION,
    RUN_DURATION,
    WAIT_DURATION,
    RUNS_ENDED,
    ATTEMPTS_DISCARDED,
    CALLS_IN_DOUBT,
    TAKEOVERS,
    COST,
    STORE_DURATION,
    DROPPED,
];

const CALL_DURATION: &str = "gen_ai.client.operation.duration";
const TOKENS: &str = "gen_ai.client.token.usage";
const FIRST_CHUNK: &str = "gen_ai.client.operation.time_to_first_chunk";
const TOOL_DURATION: &str = "gen_ai.execute_tool.duration";
const RUN_DURATION: &str = "gen_ai.invoke_agent.duration";
const WAIT_DURATION: &str = "helix.wait.duration";
const RUNS_ENDED: &str = "helix.runs.ended";
const ATTEMPTS_DISCARDED: &str = "helix.attempts.discarded";
const CALLS_IN_DOUBT: &str = "helix.calls.in_doubt";
const TAKEOVERS: &str = "helix.takeovers";
const COST: &str = "helix.cost";
const STORE_DURATION: &str = "helix.store.duration";
const DROPPED: &str = "helix.telemetry.dropped";

const MINUTE: f64 = 60.0;
const HOUR: f64 = 60.0 * MINUTE;
const DAY: f64 = 24.0 * HOUR;

/// The bounds of waits, which may take a month.
const WAIT_BOUNDS: [f64; 11] = [
    1.0,
    10.0,
    MINUTE,
    5.0 * MINUTE,
    15.0 * MINUTE,
    HOUR,
    4.0 * HOUR,
    DAY,
    3.0 * DAY,
    7.0 * DAY,
    30.0 * DAY,
];

/// The instruments of a process.
#[derive(Debug)]
pub(super) struct Instruments {
    pub(super) call_duration: Histogram<f64>,
    pub(super) tokens: Histogram<u64>,
    pub(super) first_chunk: Histogram<f64>,
    pub(super) tool_duration: Histogram<f64>,
    pub(super) run_duration: Histogram<f64>,
    pub(super) wait_duration: Histogram<f64>,
    pub(super) runs_ended: Counter<u64>,
    pub(super) attempts_discarded: Counter<u64>,
    pub(super) calls_in_doubt: Counter<u64>,
    pub(super) takeovers: Counter<u64>,
    pub(super) cost: Counter<f64>,
    pub(super) store_duration: Histogram<f64>,
    _dropped: ObservableCounter<u64>,
}

impl Instruments {
    pub(super) fn new(meter: &Meter, dropped: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        let seconds = |name, bounds: Vec<f64>| {
            meter.f64_histogram(name).with_unit("s").with_boundaries(bounds).build()
        };
        let counter = |name| meter.u64_counter(name).build();
        let tokens = meter.u64_histogram(TOKENS).with_unit("{token}");
        let dropped = meter
            .u64_observable_counter(DROPPED)
            .with_callback(move |observer| observer.observe(dropped(), &[]));
        Self {
            call_duration: seconds(CALL_DURATION, powers(0.01, 2.0, 14)),
            tokens: tokens.with_boundaries(powers(1.0, 4.0, 14)).build(),
            first_chunk: seconds(FIRST_CHUNK, powers(0.01, 2.0, 14)),
            tool_duration: seconds(TOOL_DURATION, powers(0.01, 2.0, 14)),
            run_duration: seconds(RUN_DURATION, powers(0.1, 2.0, 13)),
            wait_duration: seconds(WAIT_DURATION, WAIT_BOUNDS.to_vec()),
            runs_ended: counter(RUNS_ENDED),
            attempts_discarded: counter(ATTEMPTS_DISCARDED),
            calls_in_doubt: counter(CALLS_IN_DOUBT),
            takeovers: counter(TAKEOVERS),
            cost: meter.f64_counter(COST).with_unit("{USD}").build(),
            store_duration: seconds(STORE_DURATION, powers(0.0001, 2.0, 18)),
            _dropped: dropped.build(),
        }
    }
}

/// Returns this many bounds, each a multiple of the one before.
fn powers(first: f64, factor: f64, count: usize) -> Vec<f64> {
    std::iter::successors(Some(first), |bound| Some(bound * factor)).take(count).collect()
}
