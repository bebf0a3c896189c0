//! Tests that the recorded logs still fold to the same sessions as when they were written.

use std::fmt::Write as _;

use bytes::Bytes;
use expect_test::{Expect, expect};
use helix_agents_core::clock::Timestamp;
use helix_agents_core::id::{AppendId, RunId};
use helix_agents_core::message::Message;
use helix_agents_core::session::Session;
use helix_agents_core::store::StoredAppend;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::snapshots::folded;

#[derive(Deserialize)]
struct Entry<'a> {
    seq: u64,
    at: i64,
    run: Option<String>,
    schema: u16,
    #[serde(borrow)]
    event: &'a RawValue,
}

fn check(log: &str, expected: &Expect) {
    expected.assert_eq(&summary(&folded(appends(log))));
}

pub(super) fn appends(log: &str) -> Vec<StoredAppend> {
    let entries: Vec<Entry<'_>> = serde_json::from_str(log).unwrap();
    let append = |entry: Entry<'_>| StoredAppend {
        first: entry.seq,
        count: 1,
        id: AppendId::from(format!("a{}", entry.seq)),
        run: entry.run.map(RunId::from),
        schema: entry.schema,
        at: Timestamp(entry.at),
        body: Bytes::from(format!("[{}]", entry.event.get())),
    };
    entries.into_iter().map(append).collect()
}

fn summary(session: &Session) -> String {
    let mut out = String::new();
    let usage = session.usage();
    writeln!(out, "{} of {} {:?}", session.status(), session.agent(), session.tags()).unwrap();
    writeln!(out, "version {}, state {}", session.position().version, session.state()).unwrap();
    writeln!(
        out,
        "tokens {} in, {} out, {} cached, {} reasoning; tool calls {}; used {:?}",
        usage.tokens.input_tokens,
        usage.tokens.output_tokens,
        usage.tokens.cached_tokens,
        usage.tokens.reasoning_tokens,
        usage.tool_calls,
        usage.custom,
    )
    .unwrap();
    for run in session.runs() {
        let (started, ended) = (run.started.unwrap(), run.ended.unwrap());
        write!(out, "{}: turn {}, {:?}, ", run.id, run.turn, run.trigger).unwrap();
        write!(out, "{}, {} steps, {started} to {ended}", run.status.as_str(), run.steps).unwrap();
        write!(out, ", stream from {}", run.stream_from).unwrap();
        let error = run.error.as_ref().map(ToString::to_string);
        writeln!(out, "; {:?} {error:?} {:?}", run.output, run.reason).unwrap();
    }
    for checkpoint in session.checkpoints() {
        let (step, version, messages) = (checkpoint.step, checkpoint.version, checkpoint.messages);
        writeln!(out, "step {step} closed at {version} with {messages} messages").unwrap();
    }
    for message in session.transcript() {
        match &**message {
            Message::System { content } => writeln!(out, "system: {content}"),
            Message::User(user) => writeln!(out, "user: {}", user.content),
            Message::Assistant(assistant) => {
                let calls = assistant.tool_calls.iter();
                let calls: Vec<_> = calls
                    .map(|call| format!("{} {} {}", call.id, call.wire_id(), call.name))
                    .collect();
                writeln!(out, "assistant: {:?} {calls:?}", assistant.content)
            }
            Message::Tool(tool) => {
                writeln!(out, "tool: {} {} {}", tool.tool_call_id, tool.wire_id(), tool.content)
            }
        }
        .unwrap();
    }
    out
}

#[test]
fn parallel_tools_and_an_answer() {
    check(
        include_str!("../../../journals/v1/answer.json"),
        &expect![[r#"
        completed of recorded {"customer": "42"}
        version 11, state {"notes":["first","second"]}
        tokens 240 in, 60 out, 128 cached, 16 reasoning; tool calls 2; used {}
        r1: turn 1, Execute, completed, 2 steps, 2023-11-14T22:13:20.500Z to 2023-11-14T22:13:22.750Z, stream from 1; Some("It is paid.") None None
        step 1 closed at 8 with 5 messages
        step 2 closed at 10 with 6 messages
        user: Pay the bill.
        assistant: Some("One moment.") ["1.0 call_0 search", "1.1 call_1 search", "1.2 call_2 find"]
        tool: 1.0 call_0 {"error":"no index"}
        tool: 1.1 call_1 {"found":"second"}
        tool: 1.2 call_2 {"error":"there is no tool `find`; the tools are: search, pay"}
        assistant: Some("It is paid.") []
    "#]],
    );
}

#[test]
fn a_corrected_finish_and_a_second_turn() {
    check(
        include_str!("../../../journals/v1/finish.json"),
        &expect![[r#"
        completed of recorded {"customer": "42"}
        version 17, state {"notes":[]}
        tokens 360 in, 90 out, 192 cached, 24 reasoning; tool calls 0; used {}
        r1: turn 1, Execute, completed, 2 steps, 2023-11-14T22:13:20.500Z to 2023-11-14T22:13:23.000Z, stream from 1; Some({"result": "paid"}) None None
        r2: turn 2, Continue, completed, 1 steps, 2023-11-14T22:13:23.250Z to 2023-11-14T22:13:24.250Z, stream from 12; Some({"result":"paid too"}) None None
        step 1 closed at 7 with 4 messages
        step 2 closed at 11 with 7 messages
        step 3 closed at 16 with 8 messages
        user: Pay the bill.
        assistant: Some("One moment.") ["1.0 call_0 __finish__"]
        tool: 1.0 call_0 {"error":"the output was not accepted: at /result: 1 is not of type \"string\""}
        user: The task is not complete: no valid output was returned. Call the `__finish__` tool directly now, with the output as its arguments.
        assistant: Some("One moment.") ["2.0 call_0 search", "2.1 call_1 __finish__"]
        tool: 2.0 call_0 {"error":"not run: the turn was finished in the same reply"}
        tool: 2.1 call_1 {"acknowledged":true}
        user: And the other one?
    "#]],
    );
}

#[test]
fn a_takeover_and_an_abort() {
    check(
        include_str!("../../../journals/v1/takeover.json"),
        &expect![[r#"
        aborted of recorded {"customer": "42"}
        version 13, state {"notes":["late"]}
        tokens 120 in, 30 out, 64 cached, 8 reasoning; tool calls 1; used {}
        r1: turn 1, Execute, superseded, 0 steps, 2023-11-14T22:13:20.500Z to 2023-11-14T22:13:21.750Z, stream from 1; None None None
        r2: turn 1, Recover, aborted, 1 steps, 2023-11-14T22:13:21.750Z to 2023-11-14T22:13:23.250Z, stream from 6; None None Some("wrong bill")
        step 1 closed at 12 with 5 messages
        user: Pay the bill.
        assistant: Some("One moment.") ["1.0 call_0 pay", "1.1 call_1 search", "1.2 call_2 pay"]
        tool: 1.0 call_0 {"found":"late"}
        tool: 1.1 call_1 {"error":"the run was aborted before the call had a result; whether it acted is not known"}
        tool: 1.2 call_2 {"error":"the run was aborted before the call had a result; whether it acted is not known"}
    "#]],
    );
}

#[test]
fn requests_failures_and_amounts() {
    check(
        include_str!("../../../journals/v1/requests.json"),
        &expect![[r#"
            failed of recorded {"customer": "42"}
            version 13, state {"notes":[],"seen":true}
            tokens 240 in, 60 out, 128 cached, 16 reasoning; tool calls 0; used {"tool": {"pages": 2.5}}
            r1: turn 1, Execute, interrupted, 1 steps, 2023-11-14T22:13:20.500Z to 2023-11-14T22:13:21.750Z, stream from 1; None None None
            r2: turn 1, Resume, failed, 1 steps, 2023-11-14T22:13:22.000Z to 2023-11-14T22:13:23.250Z, stream from 7; None Some("stop_reason_unknown: the model stopped for a reason that is not known: `unheard_of`") None
            step 1 closed at 5 with 1 messages
            step 2 closed at 12 with 2 messages
            user: Pay the bill.
            assistant: Some("I") []
        "#]],
    );
}

#[test]
fn an_imported_log_and_its_heal() {
    check(
        include_str!("../../../journals/v1/imported.json"),
        &expect![[r#"
        completed of recorded {"customer": "42"}
        version 16, state {"notes":["bill"]}
        tokens 120 in, 30 out, 64 cached, 8 reasoning; tool calls 1; used {}
        r1: turn 1, Execute, completed, 2 steps, 2023-11-14T22:13:20.500Z to 2023-11-14T22:13:22.250Z, stream from 1; Some({"result":"paid"}) None None
        r2: turn 2, Continue, completed, 1 steps, 2023-11-14T22:13:22.750Z to 2023-11-14T22:13:24.000Z, stream from 10; Some({"result": "later"}) None None
        step 1 closed at 6 with 4 messages
        step 2 closed at 8 with 6 messages
        step 3 closed at 15 with 9 messages
        user: Pay the bill.
        assistant: Some("One moment.") ["1.0 call_0 search", "1.1 call_1 search"]
        tool: 1.1 call_1 {"found":"bill"}
        tool: 1.0 call_0 {"error":"not run: imported"}
        assistant: Some("One moment.") ["2.0 call_0 __finish__"]
        tool: 2.0 call_0 {"acknowledged":true}
        user: And now?
        assistant: Some("One moment.") ["3.0 call_0 __finish__"]
        tool: 3.0 call_0 {"acknowledged":true}
    "#]],
    );
}

#[test]
fn every_recorded_log_is_replayed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/journals/v1");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let known = ["answer", "finish", "imported", "requests", "takeover"];
    assert_eq!(files, known.map(|name| format!("{name}.json")));
}
