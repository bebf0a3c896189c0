//! Tests of timestamps and ids.

use crate::clock::IdSourceExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{IdSource, Timestamp, short_duration};

#[test]
fn a_timestamp_reads_as_utc_with_milliseconds() {
    assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
    assert_eq!(Timestamp(1_763_769_600_123).to_string(), "2025-11-22T00:00:00.123Z");
    assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999Z");
    assert_eq!(Timestamp(i64::MAX).to_string(), format!("{} ms", i64::MAX));
}

#[test]
fn a_timestamp_is_its_milliseconds_in_json() {
    assert_eq!(serde_json::to_string(&Timestamp(5)).unwrap(), "5");
    assert_eq!(serde_json::from_str::<Timestamp>("-5").unwrap(), Timestamp(-5));
}

#[test]
fn durations_are_readable() {
    let shown = |millis| short_duration(Duration::from_millis(millis));
    assert_eq!(
        [shown(0), shown(340), shown(4_260), shown(125_000)],
        ["0 ms", "340 ms", "4.2 s", "2 min 05 s"]
    );
}

#[test]
fn sums_and_differences_stay_within_bounds() {
    let second = Duration::from_secs(1);
    assert_eq!(Timestamp(5).after(second), Timestamp(1005));
    assert_eq!(Timestamp(i64::MAX).after(second), Timestamp(i64::MAX));
    assert_eq!(Timestamp(0).after(Duration::MAX), Timestamp(i64::MAX));
    assert_eq!(Timestamp(1005).since(Timestamp(5)), second);
    assert_eq!(Timestamp(5).since(Timestamp(1005)), Duration::ZERO);
    assert_eq!(Timestamp(5).since(Timestamp(i64::MIN)), Duration::from_millis(i64::MAX as u64));
}

#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl IdSource for Counting {
    fn next(&self) -> u128 {
        self.0.fetch_add(1, Ordering::Relaxed).into()
    }
}

#[test]
fn ids_have_a_prefix_for_their_kind() {
    let ids: &dyn IdSource = &Counting::default();
    let zeros = "0".repeat(31);
    assert_eq!(ids.session().as_str(), format!("ses_{zeros}0"));
    assert_eq!(ids.run().as_str(), format!("run_{zeros}1"));
    assert_eq!(ids.append().as_str(), format!("{zeros}2"));
    assert_eq!(ids.request().as_str(), format!("req_{zeros}3"));
}
