//! Bounds of limits.

use std::time::Duration;

use super::{Limits, MAX_DURATION};

#[test]
fn durations_are_at_most_a_year() {
    let mut limits = Limits::default();
    assert_eq!(limits.clone().bounded(), limits);
    limits.body_timeout = Duration::MAX;
    limits.head_timeout = Duration::MAX;
    limits.stall_timeout = Duration::MAX;
    limits.shutdown = Duration::MAX;
    let bounded = limits.bounded();
    let durations =
        [bounded.body_timeout, bounded.head_timeout, bounded.stall_timeout, bounded.shutdown];
    assert_eq!(durations, [MAX_DURATION; 4]);
}
