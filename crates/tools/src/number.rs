//! Conversion of numbers to JSON.

use serde_json::Number;

/// The bound above which a float cannot represent every integer.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Converts a float to a JSON number. A float with an integral value becomes an integer, as in JSON
/// Schema. Returns `None` if the number is not finite.
#[must_use]
pub fn json(number: f64) -> Option<Number> {
    if number.fract() != 0.0 || number.abs() >= MAX_WHOLE {
        return Number::from_f64(number);
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the value is integral and within the range"
    )]
    let whole = number as i64;
    Some(whole.into())
}
