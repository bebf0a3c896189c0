//! Conversion of unsigned integers to and from SQLite columns. SQLite has only signed integers, and the versions of
//! rusqlite that this crate permits convert unsigned ones differently, so the conversion is explicit.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{Error, Result, Row};

#[cfg(test)]
mod tests;

/// An unsigned integer in a column. The conversion fails for values above `i64::MAX` and for negative columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsigned(pub(crate) u64);

impl Unsigned {
    /// Reads an unsigned integer from a column.
    pub(crate) fn get(row: &Row<'_>, column: usize) -> Result<u64> {
        Ok(row.get::<_, Self>(column)?.0)
    }
}

impl ToSql for Unsigned {
    fn to_sql(&self) -> Result<ToSqlOutput<'_>> {
        match i64::try_from(self.0) {
            Ok(signed) => Ok(signed.into()),
            Err(error) => Err(Error::ToSqlConversionFailure(error.into())),
        }
    }
}

impl FromSql for Unsigned {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let signed = value.as_i64()?;
        u64::try_from(signed).map(Self).map_err(|_| FromSqlError::OutOfRange(signed))
    }
}
