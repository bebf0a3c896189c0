//! Tests of rewinds and forks in the fold.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::AnyAgent;
use crate::clock::Timestamp;
use crate::error::ErrorCode;
use crate::event::{Event, RecordedEvent, SCHEMA, ToolFinish, ToolOutcome, Trigger};
use crate::id::{RunId, SessionId};
use crate::session::{RunStatus, START_OF_SESSION, Session, StartRun, rewind_events};
use crate::store::SessionStatus;
use crate::stream::Effect;
use crate::testing::{Entry, Hand, builder, built, calls, echo, text, transcript_text};
use crate::tool::{Tool, ToolContext};

fn agent() -> AnyAgent {
    built(builder().tool(echo("search")))
}

/// Returns a session with two steps of one call each and a final answer.
fn three_steps() -> Hand {
    let search = || calls([("search", json!({}))]);
    let mut hand = Hand::new(&agent());
    hand.drive([search(), search(), text("One.")]);
    hand
}

fn fork(log: &[Entry], session: &str) -> Session {
    let mut session = Session::new(SessionId::from(session));
    for (run, event) in log {
        session.apply(event, run.as_ref()).unwrap();
    }
    session
}

fn forked(from: &str, at: u64) -> Event {
    Event::Forked { from: from.into(), at, tags: BTreeMap::new() }
}

fn code(result: crate::error::Result<()>) -> ErrorCode {
    result.unwrap_err().code()
}

#[test]
fn a_fork_starts_at_the_closed_step_without_usage() {
    let hand = three_steps();
    let at = hand.session().checkpoints()[0].version;
    let shared = &hand.log[..usize::try_from(at).unwrap()];
    let mut session = fork(shared, "fork");
    session.apply(&forked("s", at), None).unwrap();
    assert_eq!(session.id().as_str(), "fork");
    assert_eq!((session.status(), session.last_step()), (SessionStatus::Interrupted, 1));
    assert_eq!(session.last_run().unwrap().status, RunStatus::Interrupted);
    assert_eq!(session.forked().unwrap().version, at);
    assert_eq!((session.usage().tokens.input_tokens, session.tree_usage().steps), (0, 0));
    assert!(session.closed_step().is_some());
    assert_eq!(session.checkpoints(), &hand.session().checkpoints()[..1]);
}

#[test]
fn a_fork_has_its_own_labels_and_a_rollback_restores_the_old_ones() {
    let hand = three_steps();
    let at = hand.session().checkpoints()[0].version;
    let mut log = hand.log[..usize::try_from(at).unwrap()].to_vec();
    let Event::SessionCreated { tags, .. } = &mut log[0].1 else {
        panic!("the log must start with `session_created`")
    };
    tags.insert("of".to_owned(), "theirs".to_owned());
    let mut session = fork(&log, "fork");
    let (before, savepoint) = (format!("{session:?}"), session.savepoint());
    let tags = [("of".to_owned(), "ours".to_owned())].into();
    session.apply(&Event::Forked { from: "s".into(), at, tags }, None).unwrap();
    assert_eq!(session.tags()["of"], "ours");
    session.rollback(savepoint);
    assert_eq!(format!("{session:?}"), before);
}

#[test]
fn a_fork_is_legal_only_at_a_checkpoint() {
    let hand = three_steps();
    let first = hand.session().checkpoints()[0].version;
    for at in 1..hand.log.len() {
        let mut session = fork(&hand.log[..at], "fork");
        let at = at as u64;
        let applied = session.apply(&forked("s", at), None);
        if hand.session().checkpoint(at).is_ok() {
            applied.unwrap();
        } else {
            assert_eq!(code(applied), ErrorCode::LogInvalid, "at {at}");
        }
    }
    let mut session = fork(&hand.log[..usize::try_from(first).unwrap()], "fork");
    assert_eq!(code(session.apply(&forked("fork", first), None)), ErrorCode::LogInvalid);
    assert_eq!(code(session.apply(&forked("s", first + 1), None)), ErrorCode::LogInvalid);
}

#[test]
fn rolling_back_a_rewind_restores_the_session() {
    let mut hand = three_steps();
    let at = hand.session().checkpoints()[0].version;
    let before = format!("{:?}", hand.session());
    let savepoint = hand.session().savepoint();
    hand.go_back(at).unwrap();
    hand.drive([calls([("search", json!({}))])]);
    let second = hand.session().checkpoints()[1].version;
    hand.drive([text("Two.")]);
    hand.go_back(second).unwrap();
    hand.drive([text("Three.")]);
    assert_eq!(hand.session().last_step(), 6);
    hand.iterator.session_mut().rollback(savepoint);
    assert_eq!(format!("{:?}", hand.session()), before);
}

#[test]
fn a_rewind_discards_the_open_step() {
    let mut hand = Hand::new(&agent());
    hand.drive([calls([("search", json!({}))])]);
    let at = hand.session().checkpoints()[0].version;
    hand.reply(calls([("search", json!({})), ("search", json!({}))]));
    hand.result("2.0", json!(1));
    hand.go_back(at).unwrap();
    assert!(hand.session().open_step().is_none());
    let outcome = |call: &str| hand.session().has_outcome(&Effect::Tool { call: call.into() });
    assert_eq!((outcome("1.0"), outcome("2.0"), outcome("2.1")), (true, true, false));
    let runs: Vec<_> = hand.session().runs().map(|run| run.status).collect();
    assert_eq!(runs, [RunStatus::Superseded, RunStatus::Running]);
    // Late results of the previous run are refused, because their calls were removed.
    let late = Event::from(ToolFinish::without_run("2.1".into(), ToolOutcome::Acknowledged));
    assert_eq!(code(hand.put_as(Some(&RunId::from("r1")), late)), ErrorCode::LogInvalid);
    hand.drive([text("Done.")]);
    assert_eq!(hand.session().last_step(), 3);
    assert_eq!(transcript_text(hand.session().transcript()).lines().count(), 4);
}

#[test]
fn a_rewind_needs_a_checkpoint_and_a_new_run() {
    let mut hand = three_steps();
    let at = hand.session().checkpoints()[1].version;
    for to in [1, at - 1, at + 1, 1000] {
        assert_eq!(code(hand.go_back(to)), ErrorCode::LogInvalid, "to {to}");
    }
    let first = hand.session().checkpoints()[0].version;
    hand.go_back(first).unwrap();
    assert_eq!(code(hand.put(Event::Rewound { to: first })), ErrorCode::LogInvalid);
    assert_eq!(code(hand.go_back(at)), ErrorCode::LogInvalid, "the rewind removed this checkpoint");
}

#[test]
fn an_illegal_rewind_is_refused_with_an_error_code() {
    let hand = three_steps();
    let session = hand.session();
    let at = session.checkpoints()[0].version;
    let start = StartRun::new("r9".into(), "hand", 0);
    let last = session.last_run().map(|run| run.id.clone());
    let ask = |session: &Session, after: Option<&RunId>, to| {
        rewind_events(session, &agent(), &start, after, to, None)
    };
    let names = |events: Vec<Event>| events.iter().map(Event::name).collect::<Vec<_>>().join(" ");
    assert_eq!(names(ask(session, last.as_ref(), at).unwrap()), "rewound run_started");
    let refused = |result: crate::error::Result<Vec<Event>>| result.unwrap_err().code();
    let codes = [
        refused(ask(session, None, at)),
        refused(ask(session, last.as_ref(), at + 1)),
        refused(ask(&Session::new("new".into()), None, 0)),
        // Nothing is left that the model could reply to.
        refused(ask(session, last.as_ref(), START_OF_SESSION)),
    ];
    let expected = [
        ErrorCode::AlreadyResumed,
        ErrorCode::CheckpointNotFound,
        ErrorCode::AgentMismatch,
        ErrorCode::InputInvalid,
    ];
    assert_eq!(codes, expected);
}

#[test]
fn a_completed_session_is_resumed_only_after_a_rewind() {
    let mut hand = three_steps();
    assert_eq!(code(hand.start(Trigger::Resume)), ErrorCode::LogInvalid);
    let at = hand.session().checkpoints()[2].version;
    hand.go_back(at).unwrap();
    // The step at the checkpoint had ended the turn, and ends it again.
    hand.drive([]);
    assert_eq!(hand.session().status(), SessionStatus::Completed);
    assert_eq!(code(hand.start(Trigger::Resume)), ErrorCode::LogInvalid);
}

/// Returns an agent whose tool adds 1 kB to the state with each call.
fn keeper() -> AnyAgent {
    let keep = Tool::dynamic(
        "keep",
        "Keeps.",
        json!({"type": "object"}),
        |_, cx: ToolContext| async move {
            cx.update_state(|state: &mut Value| match state.as_array_mut() {
                Some(kept) => kept.push(json!("y".repeat(1000))),
                None => *state = json!([]),
            })?;
            Ok(json!("ok"))
        },
    );
    built(builder().tool(keep).max_steps(10_000))
}

#[test]
fn the_fold_grows_linearly_with_the_session() {
    let size = |steps: usize| {
        let mut hand = Hand::new(&keeper());
        hand.drive((0..steps).map(|_| calls([("keep", json!({}))])));
        assert_eq!(hand.session().checkpoints().len(), steps);
        // The text contains everything that the session holds. Shared data counts once per
        // reference.
        format!("{:?}", hand.session()).len()
    };
    let (short, long) = (size(150), size(600));
    assert!(long < 5 * short, "{short} bytes after 150 steps, {long} after 600");
}

/// Returns an agent with a tool that changes the state in different ways, to produce all kinds of
/// patch operations.
fn shaper() -> AnyAgent {
    let shape = Tool::dynamic(
        "shape",
        "Shapes.",
        json!({"type": "object"}),
        |input, cx: ToolContext| async move {
            cx.update_state(|state: &mut Value| {
                let (n, state) = (input["n"].as_u64().unwrap(), state);
                match n % 5 {
                    0 => *state = json!({"n": n, "list": [n]}),
                    1 => state["list"].as_array_mut().unwrap().push(json!("x".repeat(90))),
                    2 => state["deep"] = json!({"n": n, "text": "z".repeat(30)}),
                    3 => state["deep"]["n"] = json!([n]),
                    _ => drop(state.as_object_mut().unwrap().remove("deep")),
                }
            })?;
            Ok(json!("ok"))
        },
    );
    built(builder().tool(shape).max_steps(10_000))
}

#[test]
fn a_rewind_restores_the_state_of_every_checkpoint() {
    let mut hand = Hand::new(&shaper());
    let mut states = Vec::new();
    for n in 0..60 {
        // Sometimes the session is rewound and continues differently.
        if n % 17 == 16 {
            let back = hand.session().checkpoints().len() - 7;
            let to = hand.session().checkpoints()[back].version;
            states.truncate(back + 1);
            hand.go_back(to).unwrap();
            hand.drive([calls([("shape", json!({"n": 0}))])]);
            states.push(Arc::clone(hand.session().state()));
        }
        hand.drive([calls([("shape", json!({"n": n}))])]);
        states.push(Arc::clone(hand.session().state()));
    }
    let checkpoints = hand.session().checkpoints().to_vec();
    assert_eq!(checkpoints.len(), states.len());
    let start = (START_OF_SESSION, Arc::new(shaper().initial_state().to_value()));
    let targets = checkpoints.iter().map(|checkpoint| checkpoint.version).zip(states);
    for (to, state) in targets.chain([start]) {
        let mut session = hand.session().clone();
        let savepoint = session.savepoint();
        session.apply(&Event::Rewound { to }, Some(&RunId::from("r99"))).unwrap();
        assert_eq!(*session.state(), state, "at {to}");
        session.rollback(savepoint);
        assert_eq!(format!("{session:?}"), format!("{:?}", hand.session()));
    }
}

/// Runs that start in the same millisecond, and a fork of them, get different tokens.
#[test]
fn each_owner_has_a_greater_fencing_token() {
    let mut hand = three_steps();
    let mut tokens = Vec::new();
    let mut session = Session::new(SessionId::from("s"));
    hand.start(Trigger::Continue).unwrap();
    hand.start(Trigger::Recover).unwrap();
    for (seq, (run, event)) in (1..).zip(hand.log.clone()) {
        let at = Timestamp(1_000);
        let starts = matches!(event, Event::RunStarted { .. });
        let recorded = RecordedEvent { seq, at, run, schema: SCHEMA, event };
        session.apply_recorded(&recorded).unwrap();
        tokens.extend(starts.then(|| session.stream_writer().fencing_token));
    }
    assert_eq!(tokens, [1_000, 1_001, 1_002]);
    let at = hand.session().checkpoints()[0].version;
    let (mut fork, shared) = (Session::new("fork".into()), usize::try_from(at).unwrap());
    for (run, event) in &hand.log[..shared] {
        fork.apply(event, run.as_ref()).unwrap();
    }
    fork.acknowledge("a".into(), Timestamp(1_000));
    fork.apply(&forked("s", at), None).unwrap();
    fork.acknowledge("b".into(), Timestamp(500));
    assert_eq!(fork.stream_writer().fencing_token, 1_001);
}
