//! Tests of the events that start a run, and of its preconditions.

use std::collections::BTreeMap;

use helix_agents_core::agent::{Agent, AnyAgent};
use helix_agents_core::error::Result;
use helix_agents_core::event::{Event, Trigger};
use helix_agents_core::executor::Input;
use helix_agents_core::id::RunId;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{Session, StartRun, abort_events, execute_events, resume_events};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{code, id, names, reply, start_run, text};

#[derive(Default, Serialize, Deserialize, JsonSchema)]
struct Notes {
    notes: Vec<String>,
    count: u32,
}

fn agent() -> AnyAgent {
    Agent::builder("tester").system_prompt("p").state::<Notes>().build().unwrap().erased()
}

fn other() -> AnyAgent {
    Agent::builder("other").system_prompt("p").build().unwrap().erased()
}

fn execute(session: &Session, run: &str, input: &Input, alive: bool) -> Result<Vec<Event>> {
    let tags = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    execute_events(session, &agent(), &start_run(run), input, &tags, alive)
}

fn take(session: &mut Session, run: &str, events: &[Event]) {
    for event in events {
        session.apply(event, Some(&run.into())).unwrap();
    }
}

/// Returns a session whose run `r1` has started.
fn running() -> Session {
    let mut session = Session::new(id());
    let events = execute(&session, "r1", &"go".into(), false).unwrap();
    take(&mut session, "r1", &events);
    session
}

fn with_outcome(outcome: helix_agents_core::event::RunOutcome) -> Session {
    let mut session = running();
    let closed = [reply(1, text("Done.")), Event::StepClosed { step: 1 }];
    take(&mut session, "r1", &closed);
    take(&mut session, "r1", &[Event::RunEnded { outcome }]);
    session
}

fn completed() -> Session {
    with_outcome(helix_agents_core::event::RunOutcome::Completed { output: None })
}

fn interrupted() -> Session {
    with_outcome(helix_agents_core::event::RunOutcome::Interrupted { reason: None })
}

fn aborted() -> Session {
    with_outcome(helix_agents_core::event::RunOutcome::Aborted { reason: None })
}

fn failed() -> Session {
    let error = helix_agents_core::error::ErrorRecord::new(
        helix_agents_core::error::ErrorCode::StepLimit,
        "m",
    );
    with_outcome(helix_agents_core::event::RunOutcome::Failed { error })
}

fn trigger(events: &[Event]) -> Trigger {
    let started = events.iter().find_map(|event| match event {
        Event::RunStarted { trigger, .. } => Some(*trigger),
        _ => None,
    });
    started.unwrap()
}

#[test]
fn a_new_session_has_its_agent_tags_and_state() {
    let session = running();
    assert_eq!(&**session.agent(), "tester");
    assert_eq!(session.tags()["k"], "v");
    assert_eq!(**session.state(), json!({"notes": [], "count": 0}));
    assert_eq!(session.current_run().unwrap().trigger, Trigger::Execute);
    assert_eq!(&*session.current_run().unwrap().runtime, "hand");
}

#[test]
fn a_given_state_sets_its_members_before_the_messages() {
    let mut session = Session::new(id());
    let input = Input::from("go").with_state(&json!({"count": 3})).unwrap();
    let events = execute(&session, "r1", &input, false).unwrap();
    assert_eq!(names(&events), "session_created, run_started, state_changed, user_messages");
    take(&mut session, "r1", &events);
    assert_eq!(**session.state(), json!({"notes": [], "count": 3}));
    let same = Input::from("go").with_state(&json!({"count": 0})).unwrap();
    let events = execute(&Session::new(id()), "r1", &same, false).unwrap();
    assert_eq!(
        names(&events),
        "session_created, run_started, user_messages",
        "the given state changes nothing"
    );
}

#[test]
fn invalid_input_is_refused() {
    let fresh = Session::new(id());
    assert_eq!(code(execute(&fresh, "r1", &Input::default(), false)), "input_invalid");
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    for state in [json!({"count": "three"}), json!(7), json!({"more": deep})] {
        let input = Input::from("go").with_state(&state).unwrap();
        assert_eq!(code(execute(&fresh, "r1", &input, false)), "input_invalid");
    }
}

#[test]
fn every_session_at_rest_takes_a_new_turn() {
    for mut session in [completed(), interrupted(), failed(), aborted()] {
        let events = execute(&session, "r2", &"again".into(), false).unwrap();
        assert_eq!(trigger(&events), Trigger::Continue);
        take(&mut session, "r2", &events);
        assert_eq!(session.turn(), 2);
    }
}

#[test]
fn a_session_whose_run_has_not_ended_takes_no_new_turn() {
    assert_eq!(code(execute(&running(), "r2", &"x".into(), true)), "already_running");
    assert_eq!(code(execute(&running(), "r2", &"x".into(), false)), "run_unfinished");
}

fn resume(session: &Session, after: Option<&str>, message: Option<&str>) -> Result<Vec<Event>> {
    let after = after.map(RunId::from);
    let message = message.map(UserMessage::new);
    resume_events(session, &agent(), &start_run("r2"), after.as_ref(), message.as_ref())
}

#[test]
fn a_session_is_resumed_after_an_interruption_or_a_failure() {
    for mut session in [interrupted(), failed()] {
        let events = resume(&session, Some("r1"), None).unwrap();
        assert_eq!(names(&events), "run_started");
        assert_eq!(trigger(&events), Trigger::Resume);
        take(&mut session, "r2", &events);
        assert_eq!(session.turn(), 1);
    }
}

#[test]
fn a_resume_with_a_message_starts_a_turn() {
    let mut session = interrupted();
    let events = resume(&session, Some("r1"), Some("but")).unwrap();
    assert_eq!(names(&events), "run_started, user_messages");
    take(&mut session, "r2", &events);
    assert_eq!(session.turn(), 2);
    assert_eq!(session.current_run().unwrap().turn, 2);
}

#[test]
fn a_run_that_stopped_without_ending_is_recovered_with_a_message_or_without() {
    let events = resume(&running(), Some("r1"), None).unwrap();
    assert_eq!(trigger(&events), Trigger::Recover);
    let events = resume(&running(), Some("r1"), Some("but")).unwrap();
    assert_eq!(trigger(&events), Trigger::Recover);
    assert!(matches!(events.last(), Some(Event::UserMessages { .. })), "no step is in progress");
}

#[test]
fn a_resume_after_another_run_is_refused() {
    for after in [None, Some("r0")] {
        let error = resume(&interrupted(), after, None).unwrap_err();
        assert_eq!(error.code().as_str(), "already_resumed");
        assert!(
            error.context().any(|field| field == ("run", "r1")),
            "the error names the other run: {error}"
        );
    }
}

#[test]
fn there_is_nothing_to_resume_in_a_complete_or_aborted_turn() {
    for session in [completed(), aborted()] {
        assert_eq!(code(resume(&session, Some("r1"), None)), "nothing_to_resume");
    }
}

#[test]
fn a_session_of_another_agent_is_refused() {
    let none = BTreeMap::new();
    let error = execute_events(&completed(), &other(), &start_run("r2"), &"x".into(), &none, false);
    assert_eq!(code(error), "agent_mismatch");
    let error = resume_events(&interrupted(), &other(), &start_run("r2"), Some(&"r1".into()), None);
    assert_eq!(code(error), "agent_mismatch");
}

#[test]
fn a_state_that_no_longer_fits_the_agent_stops_before_anything_is_written() {
    let newer: AnyAgent = Agent::builder("tester")
        .system_prompt("p")
        .state::<std::collections::BTreeMap<String, Vec<Value>>>()
        .build()
        .unwrap()
        .erased();
    let after = RunId::from("r1");
    let resumed = resume_events(&interrupted(), &newer, &start_run("r2"), Some(&after), None);
    assert_eq!(code(resumed), "state_invalid");
    let none = BTreeMap::new();
    let continued =
        execute_events(&completed(), &newer, &start_run("r2"), &"x".into(), &none, false);
    assert_eq!(code(continued), "state_invalid");
}

#[test]
fn a_session_that_has_not_ended_is_aborted_and_one_that_has_is_not() {
    let abort = |session: &Session| abort_events(session, &start_run("r2"), "q".into(), None);
    for mut session in [running(), interrupted(), failed()] {
        let events = abort(&session).unwrap();
        assert_eq!(names(&events), "run_started, abort_requested");
        assert_eq!(trigger(&events), Trigger::Abort);
        take(&mut session, "r2", &events);
    }
    for session in [completed(), aborted()] {
        assert_eq!(code(abort(&session)), "nothing_to_stop");
    }
}

#[test]
fn a_run_records_the_position_of_the_stream() {
    let start = StartRun { stream_from: 42, ..start_run("r1") };
    let mut session = Session::new(id());
    let none = BTreeMap::new();
    let events = execute_events(&session, &agent(), &start, &"go".into(), &none, false).unwrap();
    take(&mut session, "r1", &events);
    assert_eq!(session.current_run().unwrap().stream_from, 42);
}
