//! The shop, an external system that stores each order with its idempotency key. A file simulates
//! it.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Result, Write as _};

const FILE: &str = "orders.txt";

/// Places an order. Returns its number.
pub(crate) fn place(article: &str, key: &str) -> Result<usize> {
    let mut file = OpenOptions::new().create(true).append(true).open(FILE)?;
    file.write_all(format!("{key} {article}\n").as_bytes())?;
    orders().map(|orders| orders.len())
}

/// Returns the number of the order with this key.
pub(crate) fn find(key: &str) -> Result<Option<usize>> {
    let has_key = |order: &String| order.split(' ').next() == Some(key);
    Ok(orders()?.iter().position(has_key).map(|index| index + 1))
}

fn orders() -> Result<Vec<String>> {
    match fs::read_to_string(FILE) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
