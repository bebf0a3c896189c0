//! Tests of the time in several time zones.

use expect_test::{Expect, expect};
use helix_agents_core::clock::Timestamp;

use super::{current_time, zone};

#[expect(clippy::needless_pass_by_value, reason = "expect! returns an owned value")]
fn check(name: &str, expected: Expect) {
    let time = current_time(Timestamp(1_719_800_000_123), zone(name).unwrap()).unwrap();
    expected.assert_eq(&serde_json::to_string(&time).unwrap());
}

#[test]
fn the_time_is_converted_to_the_time_zone() {
    check(
        "UTC",
        expect![[
            r#"{"time":"2024-07-01T02:13:20+00:00[UTC]","date":"2024-07-01","weekday":"Monday","zone":"UTC","unix_seconds":1719800000}"#
        ]],
    );
    check(
        "Europe/Berlin",
        expect![[
            r#"{"time":"2024-07-01T04:13:20+02:00[Europe/Berlin]","date":"2024-07-01","weekday":"Monday","zone":"Europe/Berlin","unix_seconds":1719800000}"#
        ]],
    );
    check(
        " asia/kathmandu ",
        expect![[
            r#"{"time":"2024-07-01T07:58:20+05:45[Asia/Kathmandu]","date":"2024-07-01","weekday":"Monday","zone":"Asia/Kathmandu","unix_seconds":1719800000}"#
        ]],
    );
}

#[test]
fn an_unknown_time_zone_is_reported() {
    for name in ["Mars/Olympus", "", "../../etc/passwd"] {
        let problem = zone(name).unwrap_err();
        assert!(problem.contains("use an IANA name such as Europe/Berlin"), "{problem}");
    }
}
