//! Scenarios for imported logs whose calls may lack results: a run heals them first.

use std::sync::Arc;

use expect_test::expect;
use helix_agents_core::agent::Agent;
use helix_agents_core::event::{
    Event, ModelReply, RunOutcome, ToolFinish, ToolOutcome, Trigger, encode,
};
use helix_agents_core::executor::{ForkOptions, ResumeOptions};
use helix_agents_core::id::{CallId, RunId, SessionId};
use helix_agents_core::json::Json;
use helix_agents_core::llm::LlmResponse;
use helix_agents_core::message::UserMessage;
use helix_agents_core::session::{load, load_events};
use helix_agents_core::step::{ParsedToolCall, StepResult, StopReason};
use helix_agents_core::store::{
    Append, AppendOutcome, Guard, LeaseChange, NewSession, Position, SessionStatus, StateStore,
    Summary,
};
use helix_agents_core::usage::Usage;
use helix_agents_test::{Reply, ScriptedLlm};
use serde_json::json;

use super::support::{S, completes, end, resume, shout, start_run, teller};
use super::{RuntimeHarness, World};
use crate::normalise;

/// Imports two appends: the user's message, and a step of two calls, one of which has no result.
async fn import(store: &dyn StateStore, ends: bool) {
    let (session, run) = (SessionId::from(S), RunId::from("theirs"));
    let call = |word: &str| ParsedToolCall::new("p", "shout", json!({ "word": word }).into());
    let response = LlmResponse::new(
        StepResult::ToolCalls {
            content: None,
            tool_calls: vec![call("a"), call("b")],
            sub_agent_calls: Vec::new(),
            thinking: None,
            stop_reason: Some(StopReason::ToolUse),
        },
        Usage::default(),
    );
    let result = ToolOutcome::Success(Json::from(json!("B")));
    let events = [
        Event::SessionCreated {
            agent: "teller".into(),
            tags: std::collections::BTreeMap::new(),
            state: Json::from(json!(null)),
            parent: None,
        },
        Event::RunStarted {
            run: run.clone(),
            after: None,
            trigger: Trigger::Execute,
            runtime: "theirs".into(),
            stream_from: 0,
            budget: None,
            clears: None,
            trace: None,
        },
        Event::UserMessages { messages: vec![UserMessage::new("go")] },
    ];
    let mut stepped = vec![
        Event::from(ModelReply::from_response(1, response, 0)),
        Event::from(ToolFinish::without_run(CallId::from("1.1"), result)),
        Event::StepClosed { step: 1 },
    ];
    if ends {
        stepped.push(Event::RunEnded { outcome: RunOutcome::Interrupted { reason: None } });
    }
    let summary = Summary {
        status: if ends { SessionStatus::Interrupted } else { SessionStatus::Active },
        run: (!ends).then(|| run.clone()),
        runtime: "theirs".into(),
        pending: 0,
        wake_at: None,
    };
    let append = |events: &[Event], expected: Position, id: &str| Append {
        session: session.clone(),
        expected,
        id: id.into(),
        run: Some(run.clone()),
        schema: 0,
        count: u32::try_from(events.len()).unwrap(),
        body: encode(events).unwrap(),
        summary: Some(summary.clone()),
        usage: None,
        lease: LeaseChange::Clear,
        guard: Guard::None,
    };
    let new = NewSession {
        agent: Arc::from("teller"),
        root: session.clone(),
        parent: None,
        tags: std::collections::BTreeMap::new(),
    };
    store.create_session(new, append(&events, Position::start(), "one")).await.unwrap();
    let position = Position { version: 3, append: "one".into() };
    let outcome = store.append(append(&stepped, position, "two")).await.unwrap();
    assert!(matches!(outcome, AppendOutcome::Appended { .. }));
}

fn agent() -> Agent {
    teller().tool(shout()).build().unwrap()
}

fn script() -> ScriptedLlm {
    ScriptedLlm::new([Reply::text("never"), Reply::text("Mended.")])
}

/// Returns the messages that the model received, in which every call has its result.
fn sent(llm: &ScriptedLlm) -> String {
    normalise::transcript(&llm.seen().last().unwrap().messages)
}

/// Returns the events of the append that heals the log, which also reopens the session.
async fn healed_with(harness: &impl RuntimeHarness, session: &SessionId) -> String {
    let log = harness.store().read_log(session, 0, 100).await.unwrap();
    let events = load_events(&*harness.store(), session, 0).await.unwrap();
    let heal = events
        .iter()
        .find(|recorded| matches!(recorded.event, Event::HistoryHealed { .. }))
        .unwrap();
    let append = log.iter().find(|recorded| recorded.version() >= heal.seq).unwrap();
    let inside = events
        .iter()
        .filter(|recorded| recorded.seq >= append.first && recorded.seq <= append.version());
    inside.map(|recorded| recorded.event.name()).collect::<Vec<_>>().join(" ")
}

/// If an imported log lacks results of calls, `execute` adds them as errors in the append that
/// starts the run.
pub async fn a_turn_on_an_imported_log_heals_it_first(harness: &impl RuntimeHarness) {
    import(&*harness.store(), true).await;
    let llm = script();
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = start_run(&*executor, &agent(), "and now?").await;
    completes(&handle).await;
    expect![[r#"
        user "go"
        assistant None shout({"word":"a"}) shout({"word":"b"})
        tool shout "B"
        tool shout {"error":"not run: the session was imported without the result"}
        user "and now?"
    "#]]
    .assert_eq(&sent(&llm));
    let appended = healed_with(harness, &S.into()).await;
    assert_eq!(appended, "history_healed run_started user_messages");
}

/// If an imported log lacks results of calls, `resume` adds them as errors in the append that
/// starts the run. A rewind to the checkpoint of that step keeps them.
pub async fn resuming_an_imported_log_heals_it_first(harness: &impl RuntimeHarness) {
    import(&*harness.store(), false).await;
    let llm = script();
    let executor = harness.boot(World::new(llm.clone())).await;
    let handle = resume(&*executor, &agent()).await.unwrap();
    completes(&handle).await;
    expect![[r#"
        user "go"
        assistant None shout({"word":"a"}) shout({"word":"b"})
        tool shout "B"
        tool shout {"error":"not run: the session was imported without the result"}
    "#]]
    .assert_eq(&sent(&llm));
    assert_eq!(healed_with(harness, &S.into()).await, "history_healed run_started");
    // The healed checkpoint can be the target of a rewind, and its calls have results there too.
    let options = ResumeOptions::default().checkpoint(6).message("again");
    let handle = executor.resume(agent().erased(), &S.into(), options).await.unwrap();
    end(&handle).await;
    expect![[r#"
        user "go"
        assistant None shout({"word":"a"}) shout({"word":"b"})
        tool shout "B"
        tool shout {"error":"not run: the session was imported without the result"}
        user "again"
    "#]]
    .assert_eq(&sent(&llm));
}

/// If an imported log lacks results of calls, its fork adds them as errors and the original does
/// not change. The checkpoint is at the end of an append, or in the middle of one.
pub async fn a_fork_of_an_imported_log_is_healed(harness: &impl RuntimeHarness) {
    for ends in [false, true] {
        harness.store().delete(&S.into()).await.unwrap();
        import(&*harness.store(), ends).await;
        let llm = script();
        let executor = harness.boot(World::new(llm.clone())).await;
        let options = ForkOptions::default().session(format!("fork-{ends}"));
        let fork = executor.fork(&S.into(), options).await.unwrap();
        let before = load(&*harness.store(), &S.into()).await.unwrap();
        assert!(before.needs_heal(), "the original is unchanged");
        let handle = executor.resume(agent().erased(), &fork, ResumeOptions::default()).await;
        let handle = handle.unwrap();
        completes(&handle).await;
        expect![[r#"
            user "go"
            assistant None shout({"word":"a"}) shout({"word":"b"})
            tool shout "B"
            tool shout {"error":"not run: the session was imported without the result"}
        "#]]
        .assert_eq(&sent(&llm));
        let inside = if ends { "model_replied tool_finished step_closed " } else { "" };
        let appended = healed_with(harness, &fork).await;
        assert_eq!(appended, format!("{inside}history_healed forked"));
    }
}
