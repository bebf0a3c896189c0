//! Unsigned integers at the bounds of a column.

use rusqlite::Connection;

use super::*;

#[test]
fn values_between_zero_and_the_largest_signed_integer_are_stored() {
    let connection = Connection::open_in_memory().unwrap();
    for value in [0, 1, i64::MAX.unsigned_abs()] {
        let read =
            connection.query_row("SELECT ?1", [Unsigned(value)], |row| Unsigned::get(row, 0));
        assert_eq!(read, Ok(value));
    }
}

#[test]
fn other_values_are_errors() {
    let connection = Connection::open_in_memory().unwrap();
    let too_large =
        connection.query_row("SELECT ?1", [Unsigned(1 << 63)], |row| Unsigned::get(row, 0));
    assert!(matches!(too_large, Err(Error::ToSqlConversionFailure(_))), "{too_large:?}");
    let negative = connection.query_row("SELECT -1", [], |row| Unsigned::get(row, 0));
    assert!(matches!(negative, Err(Error::IntegralValueOutOfRange(0, -1))), "{negative:?}");
}
