//! Tests of recorded snapshots: the JSON overviews that this version's fold computes from logs.
//!
//! `journals/snapshots/<fold>.json` contains the overviews of the recorded logs and of a log with
//! many kinds of work in progress. If a test here fails, a log results in a different overview than
//! before, or an overview in different JSON. Raise `FOLD_VERSION` then, and record the snapshots of the new
//! fold with `UPDATE_EXPECT=1`. Never rewrite an existing file, because processes of this version
//! would accept the old snapshots as their own.

use bytes::Bytes;
use helix_agents_core::clock::Timestamp;
use helix_agents_core::event::{Event, encode};
use helix_agents_core::id::RunId;
use helix_agents_core::session::{FOLD_VERSION, Session, SessionOverview};
use helix_agents_core::store::StoredAppend;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Returns the session of a recorded log. Checks after each append that the overview round-trips
/// through its snapshot and follows the log without the history.
pub(super) fn folded(appends: impl IntoIterator<Item = StoredAppend>) -> Session {
    let id = "s".into();
    let mut session = Session::new("s".into());
    let mut overview = SessionOverview::new("s".into());
    for append in appends {
        session.apply_append(&append).unwrap();
        match overview.apply_append(&append).unwrap() {
            helix_agents_core::session::FoldOutcome::Done => {
                assert_eq!(overview, *session.overview())
            }
            _ => overview = session.overview().clone(),
        }
        let snapshot = overview.to_snapshot().unwrap();
        let back = SessionOverview::from_snapshot(&id, &snapshot);
        overview = back.unwrap();
        assert_eq!(overview, *session.overview());
    }
    session
}

/// Returns a log of these events, each with its run and in an append of its own.
fn log(events: &[(Option<&str>, Value)]) -> Vec<StoredAppend> {
    let append = |(number, (run, event)): (u64, &(Option<&str>, Value))| StoredAppend {
        first: number,
        count: 1,
        id: format!("a{number}").into(),
        run: run.map(RunId::from),
        schema: 1,
        at: Timestamp(1_700_000_000_000 + i64::try_from(number).unwrap() * 1_000),
        body: encode(&[serde_json::from_str::<Event>(&event.to_string()).unwrap()]).unwrap(),
    };
    (1..).zip(events).map(append).collect()
}

/// Returns the log of a session with two steps that was rewound to the first one. Calls of the
/// third step wait for a result, for an approval that has arrived, and for a child, and another
/// call runs. A message is queued, and an interrupt and an abort are requested.
fn in_progress() -> Vec<StoredAppend> {
    let (r1, r2, r3) = (Some("r1"), Some("r2"), Some("r3"));
    let calls = |step: u32, names: &[&str]| -> Value {
        let call = |(index, name): (usize, &&str)| {
            let id = format!("{step}.{index}");
            json!({"id": id, "provider_id": format!("call_{index}"), "name": name,
                "arguments": {"json": {"n": 1.5}}})
        };
        let calls: Vec<_> = names.iter().enumerate().map(call).collect();
        json!({"model_replied": {"step": step, "message": {"content": "Now.", "tool_calls": calls},
            "should_stop": false, "stop_reason": "tool_use", "cost": 1_000, "took_ms": 7, "model": "m",
            "usage": {"input_tokens": 9, "output_tokens": 3, "cached_tokens": 1, "reasoning_tokens": 1}}})
    };
    let companion = json!({"call": "1.1", "session": "s/c", "agent": "helper",
        "companion": {"name": "helper-1", "mode": "non_blocking"}, "allowance": {"tokens": 50}});
    let child = json!({"call": "3.2", "session": "s/3.2", "agent": "helper"});
    let client = json!({"call": "3.0", "tool": "ask", "kind": "client", "digest": "d0",
        "deadline": 1_900_000_000_000_i64, "schema": {"type": "object"}});
    let approval = json!({"call": "3.1", "tool": "pay", "kind": {"approval": {"editable": true}},
        "digest": "d1"});
    let used = json!({"steps": 1, "tokens": {"input_tokens": 5, "output_tokens": 1,
        "cached_tokens": 0, "reasoning_tokens": 0}});
    let message = json!({"content": "Hurry.", "hidden": true});
    log(&[
        (
            None,
            json!({"session_created": {"agent": "recorded", "tags": {"of": "all"},
            "state": {"seen": 0.1}, "parent": {"session": "p", "call": "4.0", "root": "top"}}}),
        ),
        (
            r1,
            json!({"run_started": {"run": "r1", "after": null, "trigger": "execute",
            "runtime": "local", "stream_from": 1, "budget": {"steps": 9}}}),
        ),
        (r1, json!({"user_messages": {"messages": [{"content": "Go."}]}})),
        (r1, calls(1, &["search", "companion__spawnAgent"])),
        (r1, json!({"tool_started": {"call": "1.0", "attempt": 1, "timeout_ms": 50}})),
        (r1, json!({"child_started": companion})),
        (
            r1,
            json!({"usage_recorded": {"source_type": "tool", "source_name": "pages",
            "amount": 0.3, "call": "1.0"}}),
        ),
        (
            r1,
            json!({"tool_finished": {"call": "1.0", "outcome": {"success": {"found": 1}},
            "state_patch": [{"op": "add", "path": "/more", "value": [1]}], "attempts": 1, "took_ms": 4}}),
        ),
        (
            r1,
            json!({"tool_finished": {"call": "1.1", "outcome": {"success": {"name": "helper-1"}}}}),
        ),
        (r1, json!({"step_closed": {"step": 1}})),
        (
            None,
            json!({"message_queued": {"request": "q1", "message": message,
            "from": {"session": "s/c", "used": used}}}),
        ),
        (r1, json!({"messages_taken": {"requests": ["q1"]}})),
        (r1, calls(2, &["search"])),
        (Some("r2"), json!({"rewound": {"to": 10}})),
        (
            r2,
            json!({"run_started": {"run": "r2", "after": "r1", "trigger": "recover",
            "runtime": "local", "stream_from": 3}}),
        ),
        (
            r2,
            json!({"state_changed": {"patch": [{"op": "add", "path": "/hook", "value": 1e300}],
            "by": "on_agent_resumed"}}),
        ),
        (r2, calls(3, &["ask", "pay", "subagent__helper", "search"])),
        (r2, json!({"child_started": child})),
        (r2, json!({"child_waiting": {"call": "3.2"}})),
        (
            r2,
            json!({"run_ended": {"outcome": {"suspended": {"on": {"step": 3,
            "calls": [client, approval], "children": [child]}}}}}),
        ),
        (
            None,
            json!({"submitted": {"request": "q2", "call": "3.1", "by": "me",
            "answer": {"approved": {"edited": {"n": 2}}}}}),
        ),
        (
            r3,
            json!({"run_started": {"run": "r3", "after": "r2", "trigger": "resume",
            "runtime": "local", "stream_from": 8, "clears": "q0"}}),
        ),
        (r3, json!({"correction_sent": {"step": 3, "message": {"content": "Do."}}})),
        (r3, json!({"tool_started": {"call": "3.3", "attempt": 1}})),
        (None, json!({"interrupt_requested": {"request": "q3", "run": "r3", "reason": "tea"}})),
        (None, json!({"abort_requested": {"request": "q4", "run": "r3"}})),
        (None, json!({"message_queued": {"request": "q5", "message": {"content": "And?"}}})),
    ])
}

/// Returns the log of a fork, which shares a part of the original's log, but not its usage.
fn forked() -> Vec<StoredAppend> {
    let mut log = in_progress();
    log.truncate(10);
    let body =
        json!([{"forked": {"from": "other", "at": 10, "tags": {"of": "a fork"}}}]).to_string();
    let at = Timestamp(1_800_000_000_000);
    let (id, body) = ("fork".into(), Bytes::from(body));
    log.push(StoredAppend { first: 11, count: 1, id, run: None, schema: 1, at, body });
    log
}

#[test]
fn a_log_results_in_the_recorded_snapshot() {
    let of = |appends: Vec<StoredAppend>| {
        let snapshot = folded(appends).to_snapshot().unwrap();
        assert_eq!(snapshot.fold, FOLD_VERSION);
        let text = String::from_utf8(snapshot.body.to_vec()).unwrap();
        RawValue::from_string(text).unwrap()
    };
    let all = [
        ("answer", of(super::replay::appends(include_str!("../../../journals/v1/answer.json")))),
        ("finish", of(super::replay::appends(include_str!("../../../journals/v1/finish.json")))),
        (
            "takeover",
            of(super::replay::appends(include_str!("../../../journals/v1/takeover.json"))),
        ),
        (
            "requests",
            of(super::replay::appends(include_str!("../../../journals/v1/requests.json"))),
        ),
        (
            "imported",
            of(super::replay::appends(include_str!("../../../journals/v1/imported.json"))),
        ),
        ("under way", of(in_progress())),
        ("forked", of(forked())),
    ];
    let lines = all.map(|(name, overview)| format!("{}: {overview}", json!(name)));
    let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
    let file = format!("{}/journals/snapshots/{FOLD_VERSION}.json", env!("CARGO_MANIFEST_DIR"));
    let Ok(recorded) = std::fs::read_to_string(&file) else {
        assert!(
            std::env::var_os("UPDATE_EXPECT").is_some(),
            "no snapshots of fold {FOLD_VERSION} are recorded"
        );
        return std::fs::write(file, text).unwrap();
    };
    let hint = "the snapshots of this fold differ from the recorded ones: raise `FOLD_VERSION`";
    assert_eq!(text, recorded, "{hint}");
}
