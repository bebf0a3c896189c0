//! Real SQLite errors and the codes that they map to.

use rusqlite::Connection;

use helix_agents_core::error::ErrorCode;

use super::classify;
use crate::unsigned::Unsigned;

fn code(result: rusqlite::Result<impl Sized>) -> ErrorCode {
    classify(result.err().unwrap()).code()
}

#[test]
fn a_database_that_cannot_be_written_is_read_only() {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch("CREATE TABLE t (x); PRAGMA query_only = 1").unwrap();
    assert_eq!(code(db.execute("INSERT INTO t VALUES (1)", [])), ErrorCode::StoreReadOnly);
}

#[test]
fn a_database_at_its_largest_is_full() {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch("CREATE TABLE t (x); PRAGMA max_page_count = 2").unwrap();
    let large = db.execute("INSERT INTO t VALUES (randomblob(100000))", []);
    assert_eq!(code(large), ErrorCode::StoreFull);
}

#[test]
fn rows_that_contradict_each_other_are_damage() {
    let db = Connection::open_in_memory().unwrap();
    db.execute_batch("CREATE TABLE t (x UNIQUE); INSERT INTO t VALUES (1)").unwrap();
    assert_eq!(code(db.execute("INSERT INTO t VALUES (1)", [])), ErrorCode::StoreCorrupt);
}

#[test]
fn a_value_that_the_store_never_writes_is_damage() {
    let db = Connection::open_in_memory().unwrap();
    for value in ["'text'", "-1", "NULL"] {
        let read = db.query_row(&format!("SELECT {value}"), [], |row| Unsigned::get(row, 0));
        assert_eq!(code(read), ErrorCode::StoreCorrupt, "{value}");
    }
}

#[test]
fn a_statement_that_makes_no_sense_is_a_bug() {
    let db = Connection::open_in_memory().unwrap();
    assert_eq!(code(db.execute("SELECT nonsense", [])), ErrorCode::Internal);
}
