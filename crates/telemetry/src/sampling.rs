//! The choice of the traces that are exported.

use helix_agents_core::session::SessionOverview;
use helix_agents_core::trace::TraceId;

/// Returns `true` if a trace is exported.
pub(crate) fn is_sampled(session: &SessionOverview, trace: TraceId, ratio: Option<f64>) -> bool {
    if session.is_trace_given()
        && let Some(given) = session.turn_parent()
    {
        return given.is_sampled();
    }
    ratio.is_none_or(|ratio| is_within(trace, ratio))
}

/// Compares the last eight bytes of the id with the ratio, as OpenTelemetry's samplers do.
fn is_within(trace: TraceId, ratio: f64) -> bool {
    let mut last = [0; 8];
    last.iter_mut().zip(trace.to_bytes().iter().skip(8)).for_each(|(byte, given)| *byte = *given);
    // 63 bits: the comparison is exact enough for shares of traces.
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more precision")]
    let place = (u64::from_be_bytes(last) >> 1) as f64 / (1_u64 << 63) as f64;
    place < ratio
}
