//! Scenarios for acknowledged requests to stop whose run's owner crashes before it handles them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;
use futures_util::StreamExt as _;
use helix_agents_core::agent::Agent;
use helix_agents_core::error::{Error, ErrorCode};
use helix_agents_core::executor::{
    AgentExecutor, AgentResult, ExecuteOptions, Input, ResumeOptions, RunHandle,
};
use helix_agents_core::session::{RunStatus, Submission};
use helix_agents_core::store::SessionStatus;
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, RoutingScriptedLlm, ScriptedLlm, within};

use super::support::{
    S, Word, all_crashed, asks, check_log, child, chunks, completes, delegate, end, expire_leases,
    fold, fold_of, found, helper, options, report, resume, resume_to_end, scripts, start_run,
    status, stored_status, submit, teller, until, until_shown, word,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};

type Payments = Arc<AtomicUsize>;

/// Returns a tool that counts its executions, and then waits at the gate.
fn pay(payments: &Payments, gate: &Gate) -> Tool {
    let (payments, gate) = (Arc::clone(payments), gate.clone());
    Tool::function("pay", "Pays.", move |input: Word, _: ToolContext| {
        payments.fetch_add(1, Ordering::SeqCst);
        let gate = gate.clone();
        async move {
            gate.pass().await;
            Ok::<_, ToolError>(format!("paid {}", input.word))
        }
    })
}

fn pays() -> Reply {
    Reply::tool_call("pay", word("rent"))
}

/// Returns the result of the one run that a sweep takes over.
async fn recovered(executor: &dyn AgentExecutor) -> AgentResult {
    let mut taken = executor.recover().await.unwrap();
    assert_eq!(taken.len(), 1, "{taken:?}");
    end(&taken.pop().unwrap()).await
}

/// An owner is killed after an abort of its run was recorded. The process that takes over ends the run as aborted, and
/// calls neither the tool nor the model.
pub async fn an_abort_outlives_the_owner_of_its_run(harness: &impl RuntimeHarness) {
    let (payments, gate) = (Payments::default(), Gate::new());
    let agent = teller().tool(pay(&payments, &gate)).build().unwrap();
    let owner = harness.boot(World::new(ScriptedLlm::new([pays()]))).await;
    start_run(&*owner, &agent, "go").await;
    gate.reached().await;
    let llm = ScriptedLlm::new([Reply::text("Never said."), Reply::text("Hello.")]);
    let other = harness.boot(World::new(ScriptedLlm::new([]))).await;
    other.abort(&S.into(), Some("too dear".to_owned())).await.unwrap();
    all_crashed(harness).await;
    gate.open();
    let other = harness.boot(World::new(llm).registered(&agent)).await;
    let refused = other.execute(agent.erased(), Input::from("again"), options()).await;
    assert_eq!(refused.unwrap_err().code(), ErrorCode::RunUnfinished);
    let result = recovered(&*other).await;
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Aborted, Some("too dear")));
    assert_eq!(payments.load(Ordering::SeqCst), 1, "the takeover paid again");
    check_log(harness, &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 pay({"word":"rent"})
        abort requested Some("too dear")
          result 1.0 error tool_outcome_unknown: the run was aborted before the call had a result; whether it acted is not known
        step 1 closed
        end aborted Some("too dear")
    "#]]).await;
    assert!(other.recover().await.unwrap().is_empty());
    // The abort was only for that turn.
    completes(&start_run(&*other, &agent, "Something else.").await).await;
}

/// An owner is killed after an interrupt of its run was recorded. The process that takes over completes the current
/// step and stops. An explicit resume continues the turn.
pub async fn an_interrupt_outlives_the_owner_of_its_run(harness: &impl RuntimeHarness) {
    let (payments, gate) = (Payments::default(), Gate::new());
    let agent = teller().tool(pay(&payments, &gate)).build().unwrap();
    let script = || ScriptedLlm::new([pays(), Reply::text("All is paid.")]);
    let owner = harness.boot(World::new(script())).await;
    start_run(&*owner, &agent, "go").await;
    gate.reached().await;
    let other = harness.boot(World::new(script())).await;
    other.interrupt(&S.into(), Some("lunch".to_owned())).await.unwrap();
    all_crashed(harness).await;
    gate.open();
    let other = harness.boot(World::new(script()).registered(&agent)).await;
    let result = recovered(&*other).await;
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Interrupted, Some("lunch")));
    assert!(other.recover().await.unwrap().is_empty(), "an interrupted session rests");
    assert_eq!(resume_to_end(&*other, &agent).await.status, RunStatus::Completed);
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "go"
            step 1 reply ToolUse in=10 out=5
              call 1.0 pay({"word":"rent"})
            interrupt requested Some("lunch")
              result 1.0 "paid rent"
            step 1 closed
            end interrupted Some("lunch")
            run Resume
            step 2 reply EndTurn in=10 out=5 "All is paid."
            step 2 closed
            end completed "All is paid."
        "#]],
    )
    .await;
}

/// An abort and an interrupt are recorded for a session whose process has crashed. A caller that resumes the session
/// does not clear the abort: the run ends as aborted.
pub async fn nothing_clears_an_abort(harness: &impl RuntimeHarness) {
    let (payments, gate) = (Payments::default(), Gate::new());
    let agent = teller().tool(pay(&payments, &gate)).build().unwrap();
    let owner = harness.boot(World::new(ScriptedLlm::new([pays()]))).await;
    start_run(&*owner, &agent, "go").await;
    gate.reached().await;
    harness.kill().await;
    gate.open();
    let other = harness.boot(World::new(ScriptedLlm::new([])).registered(&agent)).await;
    other.interrupt(&S.into(), None).await.unwrap();
    other.abort(&S.into(), Some("too dear".to_owned())).await.unwrap();
    expire_leases(harness).await;
    let result = resume_to_end(&*other, &agent).await;
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Aborted, Some("too dear")));
    assert_eq!(payments.load(Ordering::SeqCst), 1);
}

/// A caller that resumes a crashed session clears a recorded interrupt. If the resumed run crashes too, a takeover does
/// not restore the interrupt.
pub async fn an_explicit_resume_clears_an_interrupt(harness: &impl RuntimeHarness) {
    let (first, second) = (Gate::new(), Gate::new());
    let agent = teller().build().unwrap();
    let owner = harness
        .boot(World::new(ScriptedLlm::new([Reply::text("Never said.").at_gate(&first)])))
        .await;
    start_run(&*owner, &agent, "go").await;
    first.reached().await;
    harness.kill().await;
    let script = || ScriptedLlm::new([Reply::text("Done.").at_gate(&second)]);
    let other = harness.boot(World::new(script())).await;
    other.interrupt(&S.into(), None).await.unwrap();
    expire_leases(harness).await;
    resume(&*other, &agent).await.unwrap();
    second.reached().await;
    all_crashed(harness).await;
    second.open();
    let third = harness.boot(World::new(script()).registered(&agent)).await;
    assert_eq!(recovered(&*third).await.status, RunStatus::Completed);
}

/// An interrupt arrives before a run is suspended to wait for a user. The answer completes the step, and then the run
/// stops as requested.
pub async fn an_interrupt_outlives_a_suspension(harness: &impl RuntimeHarness) {
    let (payments, gate) = (Payments::default(), Gate::new());
    let ask = Tool::client::<Word>("ask", "Asks a person.");
    let agent = teller().tool(pay(&payments, &gate)).tool(ask).build().unwrap();
    let llm = ScriptedLlm::new([
        Reply::calls([("pay", word("rent")), ("ask", word("colour"))]),
        Reply::text("Done."),
    ]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    handle.interrupt(Some("lunch".to_owned())).await.unwrap();
    gate.open();
    assert_eq!(end(&handle).await.status, RunStatus::SuspendedClientTool);
    submit(&*executor, Submission::result("1.1", &"red").unwrap()).await;
    let mut swept = executor.sweep().await.unwrap();
    assert_eq!(swept.len(), 1);
    let result = end(&swept.pop().unwrap()).await;
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Interrupted, Some("lunch")));
    assert_eq!(fold(harness).await.last_step(), 1);
    assert_eq!(resume_to_end(&*executor, &agent).await.status, RunStatus::Completed);
}

/// Returns an agent whose helper pays before it reports.
fn boss(payments: &Payments, gate: &Gate) -> Agent {
    let helper = helper("helper").tool(pay(payments, gate)).build().unwrap();
    teller().sub_agent(&helper).build().unwrap()
}

/// Starts a parent whose child waits in its tool and is recorded in the parent's log.
async fn family(harness: &impl RuntimeHarness, agent: &Agent, gate: &Gate) -> RunHandle {
    let owner = harness.boot(World::new(scripts([asks(&["helper"])], [pays()]))).await;
    let handle = start_run(&*owner, agent, "go").await;
    gate.reached().await;
    until(async || fold(harness).await.open_children().next().is_some()).await;
    handle
}

/// Kills a parent and its child, which is in its tool, right after the root was asked to stop: the requesting
/// process crashes before it can pass the request to the child.
async fn killed_family(harness: &impl RuntimeHarness, event: &str, agent: &Agent, gate: &Gate) {
    family(harness, agent, gate).await;
    let asked = Gate::new();
    let store = FaultStore::new(harness.store()).with_fault(event, Fault::HoldAfter(asked.clone()));
    let other = harness.boot(World::new(ScriptedLlm::new([])).with_store(store)).await;
    let (session, reason) = (S.into(), Some("lunch".to_owned()));
    let asks = async {
        match event {
            "abort_requested" => other.abort(&session, reason).await,
            _ => other.interrupt(&session, reason).await,
        }
    };
    tokio::select! {
        _ = asks => panic!("the request was to be killed midway"),
        () = asked.reached() => {}
    }
    let below = fold_of(harness, &child("1.0")).await;
    assert!(below.interrupt_request().is_none() && below.abort_request().is_none());
    all_crashed(harness).await;
    gate.open();
}

/// A root is interrupted, and all processes crash before the interrupt is passed to its child. The takeover of the root
/// stops both.
pub async fn a_takeover_passes_an_interrupt_down(harness: &impl RuntimeHarness) {
    let (payments, gate) = (Payments::default(), Gate::new());
    let agent = boss(&payments, &gate);
    killed_family(harness, "interrupt_requested", &agent, &gate).await;
    let llm = scripts([asks(&["helper"]), Reply::text("It is so.")], [pays(), report()]);
    let other = harness.boot(World::new(llm).registered(&agent)).await;
    let result = recovered(&*other).await;
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Interrupted, Some("lunch")));
    let below = fold_of(harness, &child("1.0")).await;
    assert_eq!((status(&below), below.last_step()), (RunStatus::Interrupted, 1));
    completes(&resume(&*other, &agent).await.unwrap()).await;
    assert_eq!(stored_status(harness, &child("1.0")).await, RunStatus::Completed);
}

/// A root is aborted, and all processes crash before the abort is passed to its child. The takeover of the root ends
/// the run as aborted, and then aborts the child.
pub async fn a_takeover_passes_an_abort_down(harness: &impl RuntimeHarness) {
    let (payments, gate) = (Payments::default(), Gate::new());
    let agent = boss(&payments, &gate);
    killed_family(harness, "abort_requested", &agent, &gate).await;
    let other = harness.boot(World::new(ScriptedLlm::new([])).registered(&agent)).await;
    let result = recovered(&*other).await;
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Aborted, Some("lunch")));
    // The parent's end is in the log before the child is aborted.
    until(async || stored_status(harness, &child("1.0")).await == RunStatus::Aborted).await;
    assert_eq!(payments.load(Ordering::SeqCst), 1, "the takeover paid again");
}

/// An interrupt is recorded for a parent and its child after their process has crashed. A caller that resumes the
/// parent clears both interrupts, and both sessions complete.
pub async fn an_explicit_resume_clears_an_interrupt_for_children_too(
    harness: &impl RuntimeHarness,
) {
    let (payments, gate) = (Payments::default(), Gate::new());
    let agent = boss(&payments, &gate);
    family(harness, &agent, &gate).await;
    let llm = scripts([asks(&["helper"]), Reply::text("It is so.")], [pays(), report()]);
    harness.kill().await;
    let other = harness.boot(World::new(llm).registered(&agent)).await;
    other.interrupt(&S.into(), None).await.unwrap();
    assert!(fold_of(harness, &child("1.0")).await.interrupt_request().is_some());
    expire_leases(harness).await;
    gate.open();
    completes(&within(resume(&*other, &agent)).await.unwrap()).await;
    assert_eq!(stored_status(harness, &child("1.0")).await, RunStatus::Completed);
    assert_eq!(fold_of(harness, &child("1.0")).await.interrupt_request(), None);
}

/// An interrupted child still runs in another process when its parent is resumed, and stops after that. The parent
/// resumes the child, and both complete.
pub async fn a_child_that_stops_after_the_resume_is_resumed_too(harness: &impl RuntimeHarness) {
    let (payments, first, second) = (Payments::default(), Gate::new(), Gate::new());
    let (agent, same) = (boss(&payments, &first), boss(&payments, &second));
    let crashed = family(harness, &agent, &first).await;
    all_crashed(harness).await;
    let llm = || scripts([asks(&["helper"]), Reply::text("It is so.")], [pays(), report()]);
    let elsewhere = harness.boot(World::new(llm()).registered(&same)).await;
    let below = Arc::clone(same.erased().agent_of_child("helper").unwrap());
    elsewhere.resume(below, &child("1.0"), ResumeOptions::default()).await.unwrap();
    second.reached().await;
    elsewhere.interrupt(&S.into(), None).await.unwrap();
    assert!(fold_of(harness, &child("1.0")).await.interrupt_request().is_some());
    let other = harness.boot(World::new(llm()).registered(&same)).await;
    let resumed = resume(&*other, &same).await.unwrap();
    assert_ne!(resumed.run(), crashed.run());
    second.open();
    completes(&resumed).await;
    assert_eq!(stored_status(harness, &child("1.0")).await, RunStatus::Completed);
    assert_eq!(payments.load(Ordering::SeqCst), 2, "by the crashed process and by the live one");
}

/// The takeover of an interrupted run does not resume its child, even if the child's pending call was answered. A later
/// resume of the parent continues both.
pub async fn a_takeover_that_is_to_stop_starts_no_child(harness: &impl RuntimeHarness) {
    let (payments, gate) = (Payments::default(), Gate::new());
    let helper = helper("helper").tool(Tool::client::<Word>("ask", "Asks a person.")).build();
    let agent = teller().sub_agent(&helper.unwrap()).tool(pay(&payments, &gate)).build().unwrap();
    let (name, input) = delegate("helper");
    let both = Reply::calls([("pay", word("rent")), (name.as_str(), input)]);
    let llm = || {
        let asked = Reply::tool_call("ask", word("colour"));
        scripts([both.clone(), Reply::text("It is so.")], [asked, report()])
    };
    let owner = harness.boot(World::new(llm())).await;
    start_run(&*owner, &agent, "go").await;
    gate.reached().await;
    until(async || !owner.pending_calls(&S.into()).await.unwrap().is_empty()).await;
    all_crashed(harness).await;
    gate.open();
    // Not earlier: an owner that follows the child would resume it as soon as it is answered.
    let request_context = harness.boot(World::new(ScriptedLlm::new([]))).await;
    request_context.interrupt(&S.into(), None).await.unwrap();
    submit(&*request_context, Submission::result("1.0", &"red").unwrap()).await;
    let other = harness.boot(World::new(llm()).registered(&agent)).await;
    assert_eq!(recovered(&*other).await.status, RunStatus::Interrupted);
    assert_eq!(stored_status(harness, &child("1.1")).await, RunStatus::SuspendedClientTool);
    completes(&resume(&*other, &agent).await.unwrap()).await;
    assert_eq!(stored_status(harness, &child("1.1")).await, RunStatus::Completed);
}

/// A process aborts a session and crashes before it stops the child. A sweep that finds the child aborts it.
pub async fn a_child_left_over_by_an_abort_is_aborted_by_a_sweep(harness: &impl RuntimeHarness) {
    let (payments, gate, ended) = (Payments::default(), Gate::new(), Gate::new());
    let agent = boss(&payments, &gate);
    let owner = harness.boot(World::new(scripts([asks(&["helper"])], [pays()]))).await;
    start_run(&*owner, &agent, "go").await;
    within(gate.reached()).await;
    until(async || fold(harness).await.open_children().next().is_some()).await;
    all_crashed(harness).await;
    gate.open();
    let store =
        FaultStore::new(harness.store()).with_fault("run_ended", Fault::HoldAfter(ended.clone()));
    let world = World::new(ScriptedLlm::new([])).with_store(store).registered(&agent);
    let (crashing, session) = (harness.boot(world).await, S.into());
    tokio::select! {
        _ = crashing.abort(&session, None) => panic!("the request was to be killed midway"),
        () = ended.reached() => {}
    }
    harness.kill().await;
    let other = harness.boot(World::new(ScriptedLlm::new([])).registered(&agent)).await;
    assert_eq!(stored_status(harness, &S.into()).await, RunStatus::Aborted);
    assert_eq!(stored_status(harness, &child("1.0")).await, RunStatus::Running);
    assert!(other.recover().await.unwrap().is_empty());
    assert_eq!(stored_status(harness, &child("1.0")).await, RunStatus::Aborted);
    assert_eq!(payments.load(Ordering::SeqCst), 1);
}

/// A child ends, and its owner is killed before it shows the end. Another process aborts the parent and is killed
/// before it reaches the child. A reader of the parent's run makes the stream show the end of the child.
pub async fn an_abort_leaves_no_ended_child_without_an_end_in_the_stream(
    harness: &impl RuntimeHarness,
) {
    let agent = aborted_after_its_child_ended(harness).await;
    let other = harness.boot(World::new(ScriptedLlm::new([])).registered(&agent)).await;
    // Reading the run repairs the stream.
    chunks(&found(&*other, &S.into()).await).await;
    assert_child_end_is_shown(harness).await;
}

/// As before, but the next turn of the parent starts before anyone reads the aborted run.
pub async fn a_turn_after_an_abort_shows_the_end_of_an_ended_child(harness: &impl RuntimeHarness) {
    let agent = aborted_after_its_child_ended(harness).await;
    let llm = scripts([asks(&["helper"]), Reply::text("again")], []);
    let other = harness.boot(World::new(llm).registered(&agent)).await;
    completes(&start_run(&*other, &agent, "Something else.").await).await;
    assert_child_end_is_shown(harness).await;
}

/// Runs a parent with a child that ends. Its owner is killed before it shows the end. Another process aborts the
/// parent and is killed before it reaches the child.
async fn aborted_after_its_child_ended(harness: &impl RuntimeHarness) -> Agent {
    let agent = teller().sub_agent(&helper("helper").build().unwrap()).build().unwrap();
    let (reported, child_ended, parent_ended) = (Gate::new(), Gate::new(), Gate::new());
    let held = |gate: &Gate| {
        FaultStore::new(harness.store()).with_fault("run_ended", Fault::HoldAfter(gate.clone()))
    };
    let llm = || {
        let never = Gate::new();
        let replies = [asks(&["helper"]), Reply::text("done").at_gate(&never)];
        scripts(replies, [report().at_gate(&reported)])
    };
    let owner = harness.boot(World::new(llm()).with_store(held(&child_ended))).await;
    start_run(&*owner, &agent, "go").await;
    within(reported.reached()).await;
    until_shown(&found(&*owner, &child("1.0")).await, |kind| {
        matches!(kind, ChunkKind::RunStarted { .. })
    })
    .await;
    reported.open();
    within(child_ended.reached()).await;
    all_crashed(harness).await;
    let world = World::new(llm()).with_store(held(&parent_ended)).registered(&agent);
    let crashing = harness.boot(world).await;
    let aborting = tokio::spawn(async move { crashing.abort(&S.into(), None).await });
    within(parent_ended.reached()).await;
    harness.kill().await;
    aborting.abort();
    agent
}

async fn assert_child_end_is_shown(harness: &impl RuntimeHarness) {
    let streams = harness.streams();
    let last = streams.info(&S.into()).await.unwrap().last_seq;
    let shown = streams.read(&S.into(), 1).await.unwrap().take(usize::try_from(last).unwrap());
    let shown: Vec<_> = within(shown.map(Result::unwrap).collect()).await;
    let mut of_child = shown.iter().filter(|stored| stored.chunk.session == child("1.0"));
    assert!(of_child.next_back().unwrap().chunk.kind.ends_run(), "{shown:?}");
}

/// If a session cannot be resumed, because the factory of its agent fails, a sweep still resumes the sessions that it
/// lists later.
pub async fn a_session_that_cannot_be_resumed_keeps_no_other_from_a_sweep(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let agent = |name: &str| {
        let agent = Agent::builder(name).system_prompt("You tell.").model("scripted");
        agent.build().unwrap()
    };
    let (sound, broken) = (agent("sound"), agent("broken"));
    let waits = || Reply::text("Never said.").at_gate(&gate);
    let llm = RoutingScriptedLlm::new().agent("sound", ScriptedLlm::new([waits()]));
    let llm = llm.agent("broken", ScriptedLlm::new([waits()]));
    let world = World::new(llm).registered(&sound).registered(&broken);
    let owner = harness.boot(world).await;
    for (agent, session) in [(&sound, "older"), (&broken, "newer")] {
        let options = ExecuteOptions::default().session(session);
        owner.execute(agent.erased(), "go".into(), options).await.unwrap();
    }
    gate.reached_by(2).await;
    all_crashed(harness).await;
    gate.open();

    let world = World::new(ScriptedLlm::new([Reply::text("done")])).registered(&sound);
    let away = |_: &_| Err(Error::new(ErrorCode::StoreUnavailable, "the agents are unavailable"));
    world.registry.register_factory("broken", away).unwrap();
    let other = harness.boot(world).await;
    assert_eq!(recovered(&*other).await.status, RunStatus::Completed);
    let status = |session: &'static str| async move {
        let head = harness.store().head(&session.into()).await.unwrap().unwrap();
        head.summary.status
    };
    assert_eq!(status("older").await, SessionStatus::Completed);
    assert_eq!(status("newer").await, SessionStatus::Active);
}
