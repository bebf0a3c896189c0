//! Tests of recorded logs: every released schema must replay, and the current code must write the
//! same events as before.
//!
//! `journals/v1/*.json` are arrays of `{seq, at, run, schema, event}`. If a test here fails, the
//! format of the log has changed. A new event variant or a new optional field does not make a test
//! fail. Any other change needs a new schema number, an upcaster and a folder `v2`. Do not rewrite
//! the files to make a test pass.

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
        other => panic!("there is no recorded log `{other}`"),
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
