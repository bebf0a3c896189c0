//! Runs that wait: their questions come from the log, behind new snapshots.

use helix_agents_core::event::PendingKind;
use serde_json::{Value, json};

use crate::ag_ui::{Event, Options, Progress, Translator};
use crate::testing::*;
use crate::turn::Folds;

/// Returns the events of a response that watches until the run waits, from the reload on.
fn reloaded(folds: &Folds<'_>) -> Vec<Value> {
    let empty = Log::new(SESSION);
    let before = Folds::new(empty.session());
    let mut translator = Translator::new(&before, "run-1", Options::default());
    let mut out = Vec::new();
    assert_eq!(translator.begin(&before, &mut out), Progress::Open);
    assert_eq!(translator.push_chunk(None, &own(1, text("I ask.")), &mut out), Progress::Open);
    assert_eq!(translator.push_chunk(None, &own(1, suspended()), &mut out), Progress::Reload);
    out.clear();
    assert_eq!(translator.reload(folds, &mut out), Progress::Done);
    out.iter().map(|event| serde_json::to_value(event).unwrap()).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

fn outcome(events: &[Value]) -> &Value {
    &events.last().unwrap()["outcome"]
}

fn asks(pending: &[helix_agents_core::event::PendingCall]) -> Log {
    let mut log = Log::new(SESSION);
    log.say("Hello");
    log.reply("I ask.", &pending.iter().map(|call| &*call.tool).collect::<Vec<_>>());
    log.suspend(pending, &[]);
    log
}

#[test]
fn calls_of_the_client_are_pending_at_the_end() {
    let log = asks(&[pending("1.0", "ask", PendingKind::Client)]);
    let events = reloaded(&Folds::new(log.session()));
    assert_eq!(
        types(&events),
        [
            "TEXT_MESSAGE_END",
            "STEP_FINISHED",
            "MESSAGES_SNAPSHOT",
            "STATE_SNAPSHOT",
            "RUN_FINISHED"
        ]
    );
    assert_eq!(*outcome(&events), json!({"type": "success", "pendingToolCallIds": ["1.0"]}));
}

#[test]
fn an_approval_interrupts_the_run_and_so_do_the_calls_beside_it() {
    let editable = PendingKind::Approval { editable: true };
    let log = asks(&[
        pending("1.0", "pay", editable),
        pending("1.1", "ask", PendingKind::Client),
        pending("1.2", "publish", PendingKind::Approval { editable: false }),
    ]);
    let schema = json!({"type": "object", "required": ["city"]});
    let expires = "2023-11-14T22:13:20.000Z";
    let approval = |arguments: Option<&Value>| {
        let mut properties = json!({"approved": {"type": "boolean"}, "reason": {"type": "string"}});
        if let Some(arguments) = arguments {
            properties["arguments"] = arguments.clone();
        }
        json!({"type": "object", "properties": properties, "required": ["approved"]})
    };
    let interrupt = |id: &str, call: &str, schema: Value| {
        json!({"id": id, "reason": "tool_call", "toolCallId": call, "responseSchema": schema,
            "expiresAt": expires})
    };
    let events = reloaded(&Folds::new(log.session()));
    assert_eq!(
        *outcome(&events),
        json!({"type": "interrupt", "interrupts": [
            interrupt("1.0~9f2c", "1.0", approval(Some(&schema))),
            interrupt("1.1", "1.1", schema.clone()),
            interrupt("1.2~9f2c", "1.2", approval(None)),
        ]})
    );
    // A client that comes back later gets the same questions.
    let mut out = Vec::new();
    let folds = Folds::new(log.session());
    let mut translator = Translator::new(&folds, "run-2", Options::default());
    assert_eq!(translator.begin(&folds, &mut out), Progress::Done);
    assert_eq!(serde_json::to_value(out.last().unwrap()).unwrap()["outcome"], *outcome(&events));
}

#[test]
fn a_run_that_waits_for_sub_agents_only_is_interrupted() {
    let start = child_start("1.0", "s-sub-1.0", None);
    let mut log = Log::new(SESSION);
    log.say("Hello");
    log.reply("", &["subagent__poet"]);
    log.start_child(&start);
    log.suspend(&[], std::slice::from_ref(&start));
    let events = reloaded(&Folds::new(log.session()));
    assert_eq!(
        *outcome(&events),
        json!({"type": "interrupt",
            "interrupts": [{"id": "awaiting-children", "reason": "awaiting_children"}]})
    );
    let sub_agent: Vec<_> =
        types(&events).into_iter().filter(|kind| kind.starts_with("SUBAGENT")).collect();
    assert_eq!(sub_agent, ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]);
}

#[test]
fn the_question_of_a_sub_agent_has_its_schema() {
    let start = child_start("1.0", "s-sub-1.0", None);
    let mut log = Log::new(SESSION);
    log.say("Hello");
    log.reply("", &["subagent__poet"]);
    log.start_child(&start);
    log.suspend(&[], std::slice::from_ref(&start));
    let mut child = Log::of_child(&start, SESSION);
    child.say("Work");
    child.reply("", &["pay"]);
    child.suspend(&[pending("1.0", "pay", PendingKind::Approval { editable: true })], &[]);
    let events = reloaded(&Folds::new(log.session()).with_child(child.session()));
    let question = &outcome(&events)["interrupts"][0];
    assert_eq!(question["id"], "s-sub-1.0#1.0~9f2c");
    assert_eq!(question["responseSchema"]["properties"]["arguments"]["required"], json!(["city"]));
}

/// The client would add the repeated reasoning to that of the connection that was cut.
#[test]
fn reasoning_that_only_the_client_has_is_taken_back() {
    let mut log = Log::new(SESSION);
    log.say("Hello");
    let folds = Folds::new(log.session());
    let snapshot = |ids: &[&str]| {
        let ids = ids.iter().map(|id| (*id).to_owned());
        let translator = Translator::new(&folds, "run-1", Options::default());
        let mut out = Vec::new();
        let progress = translator.with_client_reasoning(ids).begin(&folds, &mut out);
        assert_eq!(progress, Progress::Open);
        let snapshot = out.iter().find(|event| matches!(event, Event::MessagesSnapshot { .. }));
        serde_json::to_value(snapshot.unwrap()).unwrap()["messages"].clone()
    };
    let user = json!({"role": "user", "id": "s-turn-1-user-1", "content": "Hello"});
    assert_eq!(snapshot(&[]), json!([user]));
    let emptied = json!({"role": "reasoning", "id": "r-a1", "content": ""});
    assert_eq!(snapshot(&["r-a1"]), json!([user, emptied]));

    let mut recorded = Log::new(SESSION);
    recorded.say("Hello");
    recorded.reason("Hm.", "Hello.");
    let folds = Folds::new(recorded.session());
    let translator = Translator::new(&folds, "run-1", Options::default());
    let mut out = Vec::new();
    let translator = &mut translator.with_client_reasoning(["r-a1".to_owned()]);
    assert_eq!(translator.begin(&folds, &mut out), Progress::Open);
    let text = serde_json::to_string(&out).unwrap();
    assert_eq!(text.matches("\"r-a1\"").count(), 1, "{text}");
    assert!(text.contains("\"content\":\"Hm.\""), "{text}");
}
