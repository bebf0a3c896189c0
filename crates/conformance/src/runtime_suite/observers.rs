//! Scenarios for observers of the log: which process reports which event.

use std::sync::{Arc, Mutex, PoisonError};

use helix_agents_core::event::{Event, RecordedEvent};
use helix_agents_core::id::SessionId;
use helix_agents_core::observer::LogObserver;
use helix_agents_core::session::{RunStatus, Session, SessionOverview, Submission, load_events};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    S, Word, asks, child, completes, end, expire_leases, helper, report, resume, resume_to_end,
    scripts, start_run, teller, until, word,
};
use super::{RuntimeHarness, World};

/// The events that one call of an observer reported, and the version of the session at that time.
#[derive(Debug, Clone, PartialEq)]
struct Report {
    session: SessionId,
    version: u64,
    events: Vec<RecordedEvent>,
}

impl Report {
    fn new(session: &SessionOverview, events: &[RecordedEvent]) -> Self {
        let version = session.position().version;
        Self { session: session.id().clone(), version, events: events.to_vec() }
    }
}

/// An observer that keeps its reports.
#[derive(Debug, Clone, Default)]
struct Notebook {
    recorded: Arc<Mutex<Vec<Report>>>,
    requested: Arc<Mutex<Vec<Report>>>,
    recovered: Arc<Mutex<Vec<Report>>>,
}

fn all(reports: &Mutex<Vec<Report>>) -> Vec<Report> {
    reports.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn push(reports: &Mutex<Vec<Report>>, report: Report) {
    reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
}

impl LogObserver for Notebook {
    fn recorded(&self, session: &Session, events: &[RecordedEvent]) {
        push(&self.recorded, Report::new(session.overview(), events));
    }

    fn requested(&self, session: &SessionOverview, request: &RecordedEvent) {
        push(&self.requested, Report::new(session, std::slice::from_ref(request)));
    }

    fn recovered(&self, session: &Session, events: &[RecordedEvent]) {
        push(&self.recovered, Report::new(session.overview(), events));
    }
}

/// Returns the reported events of a session, in the order of the log.
fn reported(notebooks: &[&Notebook], session: &SessionId) -> Vec<RecordedEvent> {
    let reports = notebooks.iter().flat_map(|notebook| {
        let (recorded, requested) = (all(&notebook.recorded), all(&notebook.requested));
        recorded.into_iter().chain(requested)
    });
    let mut events: Vec<_> = reports
        .filter(|report| report.session == *session)
        .inspect(|report| {
            let last = report.events.last().map(|event| event.seq);
            assert_eq!(last, Some(report.version), "the session is that of the append");
        })
        .flat_map(|report| report.events)
        .collect();
    events.sort_by_key(|event| event.seq);
    events
}

/// Waits until as many events are reported as the log of a session has: an append is visible before it is reported. Then
/// checks that they are those of the log.
async fn until_reported(
    harness: &impl RuntimeHarness,
    notebooks: &[&Notebook],
    session: &SessionId,
) {
    let log = load_events(&*harness.store(), session, 0).await.unwrap();
    until(async || reported(notebooks, session).len() >= log.len()).await;
    assert_eq!(reported(notebooks, session), log);
}

/// A turn starts in one process, is answered in a second and is resumed in a third. Each event, also of the sub-agent, is
/// reported once, by the process that appended it.
pub async fn each_event_is_reported_by_the_process_that_appended_it(harness: &impl RuntimeHarness) {
    let helper = helper("helper").build().unwrap();
    let asking = Tool::client::<Word>("ask", "Asks.");
    let agent = teller().sub_agent(&helper).tool(asking).build().unwrap();
    let notebooks: [Notebook; 3] = Default::default();
    let ask = Reply::calls([("ask", word("colour"))]);
    let script = scripts([asks(&["helper"]), ask, Reply::text("Done.")], [report()]);
    let boot = async |index: usize| {
        let world = World::new(script.clone()).registered(&agent);
        harness.boot(world.observed_by(notebooks[index].clone())).await
    };
    let first = boot(0).await;
    let run = start_run(&*first, &agent, "go").await;
    assert_eq!(end(&run).await.status, RunStatus::SuspendedClientTool);
    let second = boot(1).await;
    let answer = Submission::result("2.0", &json!({ "word": "red" })).unwrap();
    second.submit_tool_result(&S.into(), answer).await.unwrap();
    let third = boot(2).await;
    let resumed = third.resume(agent.erased(), &S.into(), Default::default()).await.unwrap();
    completes(&resumed).await;

    let all_notebooks = [&notebooks[0], &notebooks[1], &notebooks[2]];
    for session in [S.into(), child("1.0")] {
        until_reported(harness, &all_notebooks, &session).await;
    }
    let requests = all(&notebooks[1].requested);
    assert!(matches!(&requests[..], [Report { events, .. }]
        if matches!(events[0].event, Event::Submitted { .. })));
    assert!(all(&notebooks[1].recorded).is_empty());
    assert!(notebooks.iter().all(|notebook| all(&notebook.recovered).is_empty()));
}

/// A tool that waits until the gate opens.
fn held(gate: &Gate) -> Tool {
    let held = gate.clone();
    Tool::function("wait", "Waits.", move |_: Word, _: ToolContext| {
        let held = held.clone();
        async move {
            held.pass().await;
            Ok::<_, ToolError>("done".to_owned())
        }
    })
}

/// A process is killed in a tool. The process that takes over reports the events of the interrupted run again, each append
/// with the session as it was then.
pub async fn a_process_that_takes_over_reports_the_last_events_again(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let agent = teller().tool(held(&gate)).build().unwrap();
    let [killed, successor]: [Notebook; 2] = Default::default();
    let script = [Reply::tool_call("wait", word("once")), Reply::text("Done.")];
    let world = World::new(ScriptedLlm::new(script.clone())).registered(&agent);
    let first = harness.boot(world.observed_by(killed.clone())).await;
    start_run(&*first, &agent, "go").await;
    gate.reached().await;
    harness.kill().await;
    gate.open();
    expire_leases(harness).await;
    let world = World::new(ScriptedLlm::new(script)).registered(&agent);
    let second = harness.boot(world.observed_by(successor.clone())).await;
    let ended = resume_to_end(&*second, &agent).await;
    assert_eq!(ended.status, RunStatus::Completed);

    let before = all(&killed.recorded);
    assert!(!before.is_empty());
    assert_eq!(all(&successor.recovered), before);
    until_reported(harness, &[&killed, &successor], &S.into()).await;
}

/// A process is killed in a tool, and so is the process that takes over. The third process reports the events of both again,
/// because the second one may have stopped before its observers handled what it recovered.
pub async fn the_events_of_two_killed_processes_are_reported_again(harness: &impl RuntimeHarness) {
    let script = [Reply::tool_call("wait", word("once")), Reply::text("Done.")];
    let notebooks: [Notebook; 3] = Default::default();
    for (index, notebook) in notebooks[..2].iter().enumerate() {
        let gate = Gate::new();
        let agent = teller().tool(held(&gate)).build().unwrap();
        let world = World::new(ScriptedLlm::new(script.clone())).registered(&agent);
        let executor = harness.boot(world.observed_by(notebook.clone())).await;
        if index == 0 {
            start_run(&*executor, &agent, "go").await;
        } else {
            resume(&*executor, &agent).await.unwrap();
        }
        gate.reached().await;
        harness.kill().await;
        gate.open();
        expire_leases(harness).await;
    }
    let agent = teller().tool(held(&Gate::opened())).build().unwrap();
    let world = World::new(ScriptedLlm::new(script)).registered(&agent);
    let third = harness.boot(world.observed_by(notebooks[2].clone())).await;
    assert_eq!(resume_to_end(&*third, &agent).await.status, RunStatus::Completed);

    let recovered = all(&notebooks[2].recovered);
    for report in notebooks[..2].iter().flat_map(|killed| all(&killed.recorded)) {
        assert!(recovered.contains(&report), "{report:?} is missing in {recovered:?}");
    }
}

/// An observer that always panics.
#[derive(Debug)]
struct Broken;

impl LogObserver for Broken {
    fn recorded(&self, _: &Session, _: &[RecordedEvent]) {
        panic!("an observer is broken");
    }
}

/// An observer panics at each append. The run completes, and the next observer receives all events.
pub async fn a_panic_of_an_observer_is_contained(harness: &impl RuntimeHarness) {
    let agent = teller().build().unwrap();
    let notebook = Notebook::default();
    let world = World::new(ScriptedLlm::new([Reply::text("Hi.")])).registered(&agent);
    let executor = harness.boot(world.observed_by(Broken).observed_by(notebook.clone())).await;
    completes(&start_run(&*executor, &agent, "go").await).await;
    until_reported(harness, &[&notebook], &S.into()).await;
}
