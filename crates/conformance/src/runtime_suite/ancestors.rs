//! Scenarios for parents and children: hooks of all ancestors, requests that are passed down, and usage that
//! adds up.

use expect_test::expect;
use helix_agents_core::agent::{Agent, CompanionMode};
use helix_agents_core::event::Event;
use helix_agents_core::executor::ResumeOptions;
use helix_agents_core::id::SessionId;
use helix_agents_core::session::{RunStatus, Submission, load_events};
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm, within};
use serde_json::json;

use super::support::{
    Diary, Report, S, Word, all_crashed, asks, child, companion, completes, fold, fold_of, helper,
    report, resume, run, scripts, shout, start_run, status, submit, teller, until, word,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};

/// Returns the diaries of the root agent and of its helper, which share their lines.
fn diaries() -> [Diary; 2] {
    let diary = Diary::default();
    ["teller", "helper"].map(|name| diary.named(name))
}

fn ask() -> Tool {
    Tool::client::<Word>("ask", "Asks a person.")
}

/// The hooks of results run in call order: for tool calls that succeeded, failed or were refused, for a refused
/// sub-agent call, and for a call next to a finish call.
pub async fn hooks_run_for_every_call_in_call_order(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let llm = ScriptedLlm::new([
        Reply::calls([
            ("nothing", json!({})),
            ("shout", word("a")),
            ("subagent__helper", json!({"message": 7})),
            ("shout", json!({})),
            ("shout", word("")),
        ]),
        Reply::calls([("shout", word("b")), ("__finish__", json!({"answer": "x", "score": 1}))]),
    ]);
    let agent = teller()
        .tool(shout())
        .sub_agent(&helper("helper").build().unwrap())
        .output::<Report>()
        .hooks(diary.clone())
        .build()
        .unwrap();
    let executor = harness.boot(World::new(llm)).await;
    assert_eq!(run(&*executor, &agent, "go").await.status, RunStatus::Completed);
    expect![[r#"
        teller: on_message tool 1.0
        teller: after_tool 1.0 nothing success=false tool_unknown
        teller: on_message tool 1.1
        teller: after_tool 1.1 shout success=true
        teller: on_message tool 1.2
        teller: after_tool 1.2 shout success=false tool_input_invalid
        teller: on_message tool 1.3
        teller: after_tool 1.3 shout success=false tool_failed
        teller: on_message tool 1.4
        teller: after_sub_agent 1.4 helper success=false tool_input_invalid
        teller: on_message tool 2.0
        teller: after_tool 2.0 shout success=false tool_not_run
        teller: on_message tool 2.1
    "#]]
    .assert_eq(&diary.results());
}

/// A process crashes in a call after it has recorded the result of another call, whose hooks have not run. The process
/// that continues runs the hooks of both results in call order.
pub async fn hooks_run_after_a_crash_for_results_recorded_before_it(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let diary = Diary::default();
    let slow = {
        let gate = gate.clone();
        Tool::function("slow", "Takes its time.", move |_: Word, _: ToolContext| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                Ok::<_, ToolError>("there")
            }
        })
    };
    let agent = teller().tool(shout()).tool(slow).hooks(diary.clone()).build().unwrap();
    let llm = || {
        let calls = [("shout", word("a")), ("slow", word("b"))];
        ScriptedLlm::new([Reply::calls(calls), Reply::text("Done.")])
    };
    let executor = harness.boot(World::new(llm())).await;
    start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    until(async || {
        let fold = fold(harness).await;
        let step = fold.open_step().unwrap();
        step.call(&"1.0".into()).unwrap().finish.is_some()
    })
    .await;
    assert_eq!(diary.results(), "");
    all_crashed(harness).await;
    gate.open();
    let executor = harness.boot(World::new(llm())).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    expect![[r#"
        teller: on_message tool 1.0
        teller: after_tool 1.0 shout success=true
        teller: on_message tool 1.1
        teller: after_tool 1.1 slow success=true
    "#]]
    .assert_eq(&diary.results());
}

/// An abort of a suspended parent and its child calls the hooks for every call that it ends. The hooks of the parent
/// are also called for the call of the child.
pub async fn hooks_run_for_every_end_in_an_aborted_tree(harness: &impl RuntimeHarness) {
    let [diary, helpers] = diaries();
    let helper = helper("helper").tool(ask()).hooks(helpers).build().unwrap();
    let agent = teller().sub_agent(&helper).hooks(diary.clone()).build().unwrap();
    let llm = scripts([asks(&["helper"])], [Reply::tool_call("ask", word("colour"))]);
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    run(&*executor, &agent, "go").await;
    executor.abort(&S.into(), None).await.unwrap();
    assert_eq!(status(&fold_of(harness, &child("1.0")).await), RunStatus::Aborted);
    expect![[r#"
        teller's in teller: on_message tool 1.0
        teller's in teller: after_sub_agent 1.0 helper success=false tool_outcome_unknown
        teller's in helper: on_message tool 1.0
        helper's in helper: on_message tool 1.0
        teller's in helper: after_tool 1.0 ask success=false tool_not_run
        helper's in helper: after_tool 1.0 ask success=false tool_not_run
    "#]]
    .assert_eq(&diary.results());
}

/// An abort of a suspended companion whose parent has ended calls the hooks of both the parent and the companion for
/// the open call.
pub async fn a_child_is_aborted_under_the_hooks_of_its_parent(harness: &impl RuntimeHarness) {
    let [diary, helpers] = diaries();
    let helper = helper("helper").tool(ask()).hooks(helpers).build().unwrap();
    let agent =
        teller().companion(&helper, CompanionMode::NonBlocking).hooks(diary.clone()).build();
    let agent = agent.unwrap();
    let spawn = json!({"agent": "helper", "message": "find out", "name": "rex"});
    let llm = scripts(
        [Reply::tool_call("companion__spawnAgent", spawn), Reply::text("Later.")],
        [Reply::tool_call("ask", word("colour"))],
    );
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    run(&*executor, &agent, "go").await;
    let rex = companion("rex");
    let below = executor.handle(&rex).await.unwrap();
    assert!(within(below.result()).await.unwrap().status.is_suspended());
    executor.abort(&rex, None).await.unwrap();
    assert_eq!(status(&fold_of(harness, &rex).await), RunStatus::Aborted);
    expect![[r#"
        teller's in teller: on_message tool 1.0
        teller's in teller: after_tool 1.0 companion__spawnAgent success=true
        teller's in helper: on_message tool 1.0
        helper's in helper: on_message tool 1.0
        teller's in helper: after_tool 1.0 ask success=false tool_not_run
        helper's in helper: after_tool 1.0 ask success=false tool_not_run
    "#]]
    .assert_eq(&diary.results());
}

/// A caller resumes a suspended companion whose parent has ended. The hooks of both the parent and the companion are
/// called for its results.
pub async fn a_child_is_resumed_under_the_hooks_of_its_parent(harness: &impl RuntimeHarness) {
    let [diary, helpers] = diaries();
    let helper = helper("helper").tool(ask()).hooks(helpers).build().unwrap();
    let agent =
        teller().companion(&helper, CompanionMode::NonBlocking).hooks(diary.clone()).build();
    let agent = agent.unwrap();
    let spawn = json!({"agent": "helper", "message": "find out", "name": "rex"});
    let llm = scripts(
        [Reply::tool_call("companion__spawnAgent", spawn), Reply::text("Later.")],
        [Reply::tool_call("ask", word("colour")), report()],
    );
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    run(&*executor, &agent, "go").await;
    let rex = companion("rex");
    let below = executor.handle(&rex).await.unwrap();
    assert!(within(below.result()).await.unwrap().status.is_suspended());
    let pending = executor.pending_calls(&S.into()).await.unwrap();
    let call = pending[0].reference().to_string();
    submit(&*executor, Submission::result(call.as_str(), &"red").unwrap()).await;
    let resumed = executor.resume(helper.erased(), &rex, ResumeOptions::default()).await.unwrap();
    completes(&resumed).await;
    expect![[r#"
        teller's in teller: on_message tool 1.0
        teller's in teller: after_tool 1.0 companion__spawnAgent success=true
        teller's in helper: on_message tool 1.0
        helper's in helper: on_message tool 1.0
        teller's in helper: after_tool 1.0 ask success=true
        helper's in helper: after_tool 1.0 ask success=true
        teller's in helper: on_message tool 2.0
        helper's in helper: on_message tool 2.0
    "#]]
    .assert_eq(&diary.results());
}

/// A caller that interrupts a parent stops before it passes the interrupt to the child. The owner of the parent passes
/// the interrupt on once, and both sessions stop.
pub async fn an_owner_passes_an_interrupt_down(harness: &impl RuntimeHarness) {
    let (gate, started, asked, passed) = (Gate::new(), Gate::new(), Gate::new(), Gate::new());
    let holding = |gate: &Gate| {
        FaultStore::new(harness.store())
            .with_fault("interrupt_requested", Fault::HoldAfter(gate.clone()))
    };
    let helper = helper("helper").tool(shout()).build().unwrap();
    let agent = teller().sub_agent(&helper).build().unwrap();
    let first = Reply::tool_call("shout", word("hm")).at_gate(&gate);
    let llm = scripts([asks(&["helper"])], [first, report()]);
    let store = holding(&passed).with_fault("child_started", Fault::HoldAfter(started.clone()));
    let executor = harness.boot(World::new(llm).short_lease().with_store(store)).await;
    let handle = start_run(&*executor, &agent, "Is it so?").await;
    within(started.reached()).await;
    started.open();
    within(gate.reached()).await;
    let other = harness.boot(World::new(ScriptedLlm::new([])).with_store(holding(&asked))).await;
    let requester = async {
        other.interrupt(&S.into(), Some("lunch".to_owned())).await.unwrap();
    };
    tokio::select! {
        () = requester => panic!("the request was to be killed midway"),
        () = asked.reached() => {}
    }
    within(passed.reached()).await;
    passed.open();
    gate.open();
    let result = within(handle.result()).await.unwrap();
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Interrupted, Some("lunch")));
    let below = fold_of(harness, &child("1.0")).await;
    assert_eq!((status(&below), below.last_step()), (RunStatus::Interrupted, 1));
    let log = load_events(&*harness.store(), &child("1.0"), 0).await.unwrap();
    let asked =
        log.iter().filter(|recorded| matches!(recorded.event, Event::InterruptRequested { .. }));
    assert_eq!(asked.count(), 1, "it is requested once");
}

/// The usage of a run includes a companion that continues after its parent, a sub-agent, has ended. The log of the root
/// does not contain this usage.
pub async fn what_outlives_its_parent_is_counted(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let scout = Agent::builder("scout")
        .description("Looks around.")
        .system_prompt("You look around.")
        .model("scripted")
        .build()
        .unwrap();
    let helper = helper("helper").companion(&scout, CompanionMode::NonBlocking).build().unwrap();
    let agent = teller().sub_agent(&helper).build().unwrap();
    let spawn = json!({"agent": "scout", "message": "look", "name": "rex"});
    let llm = scripts(
        [asks(&["helper"]), Reply::text("It is so.")],
        [Reply::tool_call("companion__spawnAgent", spawn), report()],
    )
    .agent("scout", ScriptedLlm::new([Reply::text("No answer.").at_gate(&gate)]));
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "Is it so?").await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    gate.open();
    let rex = executor.handle(&SessionId::of_companion(&child("1.0"), "rex")).await.unwrap();
    assert_eq!(within(rex.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(fold(harness).await.tree_usage().steps, 4, "what its own log contains");
    let used = handle.usage().await.unwrap();
    assert_eq!((used.steps, used.tokens.input_tokens), (5, 50));
    assert_eq!(used.sub_agents["helper"].tokens.input_tokens, 30);
    assert_eq!(used.sub_agents["scout"].tokens.input_tokens, 10);
    let below = executor.handle(&child("1.0")).await.unwrap().usage().await.unwrap();
    assert_eq!(below.steps, 3);
}
