//! Tests of results and error messages.

use serde_json::json;

use super::compute;

#[track_caller]
fn gives(expression: &str, value: &serde_json::Value) {
    let computed = compute(expression).unwrap();
    assert_eq!(serde_json::to_value(&computed.value).unwrap(), *value, "{expression}");
}

#[track_caller]
fn fails(expression: &str, because: &str) {
    let error = compute(expression).unwrap_err();
    assert!(error.message().contains(because), "{expression}: {}", error.message());
}

#[test]
fn arithmetic_is_as_in_school() {
    for (expression, value) in [
        ("1 + 2 * 3", json!(7)),
        ("2 ^ 3 ^ 2", json!(512)),
        ("-2 ^ 2", json!(-4)),
        ("(1 + 2) * 3 / 2", json!(4.5)),
        ("10 - 3 - 2", json!(5)),
        ("7 mod 3", json!(1)),
        ("1.5e3 + .5", json!(1500.5)),
        ("sqrt(16) + max(1, 2, 3)", json!(7)),
        ("log(8, 2) + log10(100) + ln(e)", json!(6)),
        ("cos(pi)", json!(-1)),
        ("5!", json!(120)),
        ("2 ^ 53", json!(9_007_199_254_740_992.0)),
    ] {
        gives(expression, &value);
    }
}

#[test]
fn errors_are_reported_with_their_position() {
    for (expression, because) in [
        ("1 / 0", "division by zero at position 1, in `1 / 0`"),
        ("5 mod (1 - 1)", "division by zero"),
        ("sqrt(-1)", "operand out of domain"),
        ("ln(0)", "operand out of domain"),
        ("1e308 * 10", "overflow"),
        ("fact(171)", "overflow"),
        ("x + 1", "unknown variable at position 1, in `x`; the tool's description lists"),
        ("system(1)", "unknown function at position 1"),
        ("3 km", "in `km`; write numbers without separators or units"),
        ("1,500 + 1", "at position 2, in `,`; write numbers without separators"),
        ("2 +", "unexpected end"),
        ("(1", "unclosed parenthesis"),
        ("", "unexpected end"),
        ("1 € 2", "unexpected character"),
    ] {
        fails(expression, because);
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    for part in ["(", "-", "2^", "sqrt(", "1+(", "!", "max(1,"] {
        let expression = part.repeat(500 / part.len());
        assert!(compute(&expression).is_err(), "{part}");
    }
    gives(&format!("{}1", "1+".repeat(249)), &json!(250));
    fails(&format!("{}1{}", "(".repeat(100), ")".repeat(100)), "nested too deeply");
}
