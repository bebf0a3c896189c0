//! Recorded logs: every released schema must replay, and today's events must be written as they
//! were.
//!
//! `journals/v1/*.json` are arrays of `{seq, at, run, schema, event}`. A test here that fails
//! means that the format of the log changed. Adding a variant or an optional field does not make
//! one fail; anything else takes a new schema number, an upcaster and a folder `v2`. The files are
//! not rewritten to make a test pass.

mod logs;
mod replay;
mod snapshots;

use expect_test::{ExpectFile, expect_file};

use logs::Recorder;

fn file(name: &str) -> ExpectFile {
    match name {
        "answer" => expect_file!["../../journals/v1/answer.json"],
        "finish" => expect_file!["../../journals/v1/finish.json"],
        "takeover" => expect_file!["../../journals/v1/takeover.json"],
        "requests" => expect_file!["../../journals/v1/requests.json"],
        "imported" => expect_file!["../../journals/v1/imported.json"],
        other => panic!("no log is named {other}"),
    }
}

fn check(name: &str, recorder: &Recorder) {
    file(name).assert_eq(&recorder.json());
}

#[test]
fn parallel_tools_and_an_answer_are_written_as_they_were() {
    check("answer", &logs::answer());
}

#[test]
fn a_corrected_finish_and_a_second_turn_are_written_as_they_were() {
    check("finish", &logs::finish());
}

#[test]
fn a_takeover_and_an_abort_are_written_as_they_were() {
    check("takeover", &logs::takeover());
}

#[test]
fn requests_failures_and_amounts_are_written_as_they_were() {
    check("requests", &logs::requests());
}

#[test]
fn an_imported_log_and_its_heal_are_written_as_they_were() {
    check("imported", &logs::imported());
}
