//! Numbers as JSON.

use serde_json::Number;

/// From here on whole numbers have no place of their own any more.
const MOST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// A number that is whole is a whole number however it was written or computed, as in JSON Schema.
/// Nothing if it is not finite.
pub(crate) fn json(number: f64) -> Option<Number> {
    if number.fract() != 0.0 || number.abs() >= MOST_WHOLE {
        return Number::from_f64(number);
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
    let whole = number as i64;
    Some(whole.into())
}
