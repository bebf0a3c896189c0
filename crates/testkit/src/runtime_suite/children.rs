//! Sub-agents: sessions of their own, below the session that called upon them.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use expect_test::expect;
use helix_agents_core::agent::{Agent, SubAgent};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::executor::{Input, Resumable};
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult, SubAgentView, ToolCallView};
use helix_agents_core::id::SessionId;
use helix_agents_core::json::Json;
use helix_agents_core::session::{RunStatus, Session, Submission, load, load_events};
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolError};
use serde_json::json;

use super::support::{
    Report, S, Word, begin, check_log, check_stream, check_transcript, chunks, fold, resume, run,
    shout, teller, until_shown,
};
use super::{RuntimeHarness, World};
use crate::faults::{Fault, FaultStore};
use crate::gate::{Gate, within};
use crate::normalise;
use crate::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};

/// An agent that others may call upon.
fn helper(name: &str) -> helix_agents_core::agent::AgentBuilder<(), Report> {
    Agent::builder(name)
        .description("Finds things out.")
        .system_prompt("You find out.")
        .model("scripted")
        .tool(shout())
        .output::<Report>()
}

fn boss(helper: &Agent<(), Report>) -> Agent {
    teller().tool(shout()).sub_agent(helper).build().unwrap()
}

fn delegate(name: &str) -> (String, serde_json::Value) {
    (format!("subagent__{name}"), json!({"message": "find out"}))
}

fn asks(names: &[&str]) -> Reply {
    let calls: Vec<_> = names.iter().map(|name| delegate(name)).collect();
    Reply::calls(calls.iter().map(|(name, input)| (name.as_str(), input.clone())))
}

fn report() -> Reply {
    Reply::finish(json!({"answer": "yes", "score": 1}))
}

fn scripts(boss: ScriptedLlm, helper: ScriptedLlm) -> RoutingScriptedLlm {
    RoutingScriptedLlm::new().agent("teller", boss).agent("helper", helper)
}

fn child(call: &str) -> SessionId {
    SessionId::of_call(&S.into(), &call.into())
}

async fn fold_of(harness: &impl RuntimeHarness, session: &SessionId) -> Session {
    load(&*harness.store(), session).await.unwrap()
}

fn status(session: &Session) -> RunStatus {
    session.last_run().unwrap().status
}

/// Its output is the call's result, its log its own, and its chunks stand in its caller's stream.
pub async fn a_sub_agent_answers_like_a_tool(harness: &impl RuntimeHarness) {
    let llm = scripts(
        ScriptedLlm::new([asks(&["helper"]), Reply::text("It is so.")]),
        ScriptedLlm::new([Reply::tool_call("shout", json!({"word": "hm"})), report()]),
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = boss(&helper("helper").build().unwrap());
    let handle = begin(&*executor, &agent, "Is it so?").await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    check_transcript(
        harness,
        &expect![[r#"
            user "Is it so?"
            assistant None subagent__helper({"message":"find out"})
            tool subagent__helper {"answer":"yes","score":1}
            assistant Some("It is so.")
        "#]],
    )
    .await;
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "Is it so?"
            step 1 reply ToolUse in=10 out=5
              call 1.0 subagent__helper({"message":"find out"})
            child story-sub-1.0 of helper for 1.0
              result 1.0 {"answer":"yes","score":1} used in=20 out=10 steps=2 calls=1
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "It is so."
            step 2 closed
            end completed "It is so."
        "#]],
    )
    .await;
    let log = load_events(&*harness.store(), &child("1.0"), 0).await.unwrap();
    expect![[r#"
        session helper state=null below story for 1.0
        run Execute
        user "find out"
        step 1 reply ToolUse in=10 out=5
          call 1.0 shout({"word":"hm"})
          result 1.0 "HM"
        step 1 closed
        step 2 reply ToolUse in=10 out=5
          call 2.0 __finish__({"answer":"yes","score":1})
          result 2.0 acknowledged finishes {"answer":"yes","score":1}
        step 2 closed
        end completed {"answer":"yes","score":1}
    "#]]
    .assert_eq(&normalise::log(&log));
    check_stream(
        &handle,
        &expect![[r#"
            run_started
            tool_arg 0 subagent__helper
            args {"message":"find out"}
            subagent_start 1.0 helper
            [helper] run_started
            [helper] tool_arg 0 shout
            [helper] args {"word":"hm"}
            [helper] tool_start 1.0 shout {"word":"hm"}
            [helper] tool_end 1.0 success=true "HM"
            [helper] checkpoint
            [helper] checkpoint
            [helper] output {"answer":"yes","score":1}
            [helper] run_ended completed
            subagent_end 1.0 helper success=true
            tool_end 1.0 success=true {"answer":"yes","score":1}
            checkpoint
            text It is so.
            checkpoint
            output "It is so."
            run_ended completed
        "#]],
    )
    .await;
    assert_eq!(fold(harness).await.tree_usage().steps, 4);
}

/// What goes wrong with one is told to the model, and the others go on.
pub async fn a_sub_agent_that_fails_does_not_disturb_its_siblings(harness: &impl RuntimeHarness) {
    let llm = RoutingScriptedLlm::new()
        .agent(
            "teller",
            ScriptedLlm::new([
                asks(&["helper", "broken", "odd", "nobody"]),
                Reply::text("One did."),
            ]),
        )
        .agent("helper", ScriptedLlm::new([report()]))
        .agent("broken", ScriptedLlm::new([Reply::fails(ErrorCode::ProviderRejected)]));
    let executor = harness.boot(World::new(llm)).await;
    let odd = SubAgent::new(&helper("odd").build().unwrap());
    let odd = odd.input(|_: helix_agents_core::agent::Delegation| Input::default());
    let agent = teller()
        .sub_agent(&helper("helper").build().unwrap())
        .sub_agent(&helper("broken").build().unwrap())
        .sub_agent(odd)
        .build()
        .unwrap();
    let handle = begin(&*executor, &agent, "Is it so?").await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let shown = normalise::stream(&chunks(&handle).await);
    assert!(shown.contains("tool_error 1.2 sub_agent_dispatch_failed"), "{shown}");
    check_transcript(
        harness,
        &expect![[r#"
            user "Is it so?"
            assistant None subagent__helper({"message":"find out"}) subagent__broken({"message":"find out"}) subagent__odd({"message":"find out"}) subagent__nobody({"message":"find out"})
            tool subagent__helper {"answer":"yes","score":1}
            tool subagent__broken {"error":"the sub-agent failed: as scripted"}
            tool subagent__odd {"error":"the sub-agent could not be begun: the input has no message"}
            tool subagent__nobody {"error":"there is no tool `subagent__nobody`; the tools are: subagent__helper, subagent__broken, subagent__odd"}
            assistant Some("One did.")
        "#]],
    )
    .await;
}

/// A tool that waits for a yes.
fn pay() -> Tool {
    Tool::function("pay", "Pays.", |input: Word, _| async move {
        Ok::<_, ToolError>(format!("paid {}", input.word))
    })
    .requires_approval()
}

/// A child that waits for people lets its caller wait; a sibling runs to its end meanwhile; answers
/// go to the root and find the child.
pub async fn a_child_that_waits_for_people_lets_its_caller_wait(harness: &impl RuntimeHarness) {
    let llm = || {
        RoutingScriptedLlm::new()
            .agent("teller", ScriptedLlm::new([asks(&["payer", "helper"]), Reply::text("Paid.")]))
            .agent("helper", ScriptedLlm::new([report()]))
            .agent(
                "payer",
                ScriptedLlm::new([Reply::tool_call("pay", json!({"word": "rent"})), report()]),
            )
    };
    let payer = helper("payer").tool(pay()).build().unwrap();
    let agent =
        teller().sub_agent(&payer).sub_agent(&helper("helper").build().unwrap()).build().unwrap();
    let executor = harness.boot(World::new(llm())).await;
    let result = run(&*executor, &agent, "Pay.").await;
    assert_eq!(result.status, RunStatus::SuspendedAwaitingChildren);
    let waits = result.suspended.unwrap();
    assert_eq!(waits.children.len(), 1);
    assert_eq!(waits.children[0].session, child("1.0"));
    assert_eq!(status(&fold_of(harness, &child("1.1")).await), RunStatus::Completed);
    assert_eq!(executor.can_resume(&S.into()).await.unwrap(), Resumable::Waiting);
    assert_eq!(resume(&*executor, &agent).await.unwrap_err().code(), ErrorCode::Suspended);

    harness.kill().await;
    let executor = harness.boot(World::new(llm())).await;
    let pending = executor.pending_calls(&S.into()).await.unwrap();
    assert_eq!(pending.len(), 1);
    assert_eq!(pending[0].session, child("1.0"));
    let wrong = executor.submit_tool_result(&child("1.0"), Submission::approve("1.0")).await;
    assert_eq!(wrong.unwrap_err().code(), ErrorCode::NotRoot);
    executor.submit_tool_result(&S.into(), Submission::approve("1.0")).await.unwrap();
    assert_eq!(executor.can_resume(&S.into()).await.unwrap(), Resumable::Yes);
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    check_transcript(
        harness,
        &expect![[r#"
            user "Pay."
            assistant None subagent__payer({"message":"find out"}) subagent__helper({"message":"find out"})
            tool subagent__payer {"answer":"yes","score":1}
            tool subagent__helper {"answer":"yes","score":1}
            assistant Some("Paid.")
        "#]],
    )
    .await;
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "Pay."
            step 1 reply ToolUse in=10 out=5
              call 1.0 subagent__payer({"message":"find out"})
              call 1.1 subagent__helper({"message":"find out"})
            child story-sub-1.0 of payer for 1.0
            child story-sub-1.1 of helper for 1.1
            end suspended below 1.0
            run Resume
              result 1.0 {"answer":"yes","score":1} used in=20 out=10 steps=2 calls=1
              result 1.1 {"answer":"yes","score":1} used in=10 out=5 steps=1 calls=0
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "Paid."
            step 2 closed
            end completed "Paid."
        "#]],
    )
    .await;
}

/// The process dies with both at work; the next one goes on with both, and repeats nothing.
pub async fn a_restart_goes_on_with_a_child_where_it_stopped(harness: &impl RuntimeHarness) {
    let llm = |gate: &Gate| {
        scripts(
            ScriptedLlm::new([asks(&["helper"]), Reply::text("It is so.")]),
            ScriptedLlm::new([
                Reply::tool_call("shout", json!({"word": "hm"})),
                report().at_gate(gate),
            ]),
        )
    };
    let agent = boss(&helper("helper").build().unwrap());
    let gate = Gate::new();
    let executor = harness.boot(World::new(llm(&gate)).short_lease()).await;
    begin(&*executor, &agent, "Is it so?").await;
    gate.reached().await;
    harness.kill().await;
    gate.open();
    let executor = harness.boot(World::new(llm(&gate))).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let below = fold_of(harness, &child("1.0")).await;
    assert_eq!((status(&below), below.tool_calls()), (RunStatus::Completed, 1));
    assert_eq!(below.runs().count(), 2);
    assert_eq!(fold(harness).await.tree_usage().steps, 4);
}

/// Asked to stop, the caller asks its child; gone on with, the child goes on first.
pub async fn an_interrupt_reaches_a_child_and_resuming_too(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm = scripts(
        ScriptedLlm::new([asks(&["helper"]), Reply::text("It is so.")]),
        ScriptedLlm::new([
            Reply::tool_call("shout", json!({"word": "hm"})).at_gate(&gate),
            report(),
        ]),
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = boss(&helper("helper").build().unwrap());
    let handle = begin(&*executor, &agent, "Is it so?").await;
    gate.reached().await;
    handle.interrupt(Some("lunch".to_owned())).await.unwrap();
    gate.open();
    let result = within(handle.result()).await.unwrap();
    assert_eq!((result.status, result.reason.as_deref()), (RunStatus::Interrupted, Some("lunch")));
    let below = fold_of(harness, &child("1.0")).await;
    assert_eq!((status(&below), below.last_step()), (RunStatus::Interrupted, 1));
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    check_log(
        harness,
        &expect![[r#"
            session teller state=null
            run Execute
            user "Is it so?"
            step 1 reply ToolUse in=10 out=5
              call 1.0 subagent__helper({"message":"find out"})
            child story-sub-1.0 of helper for 1.0
            interrupt requested Some("lunch")
            end interrupted Some("lunch")
            run Resume
              result 1.0 {"answer":"yes","score":1} used in=20 out=10 steps=2 calls=1
            step 1 closed
            step 2 reply EndTurn in=10 out=5 "It is so."
            step 2 closed
            end completed "It is so."
        "#]],
    )
    .await;
}

/// Aborted, the caller aborts its child, and both are answered for.
pub async fn an_abort_reaches_a_child(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm =
        scripts(ScriptedLlm::new([asks(&["helper"])]), ScriptedLlm::new([report().at_gate(&gate)]));
    let executor = harness.boot(World::new(llm)).await;
    let agent = boss(&helper("helper").build().unwrap());
    let handle = begin(&*executor, &agent, "Is it so?").await;
    gate.reached().await;
    handle.abort(None).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Aborted);
    let below = executor.handle(&child("1.0")).await.unwrap();
    assert_eq!(within(below.result()).await.unwrap().status, RunStatus::Aborted);
}

/// One child waits for people while another works: both end with their caller.
pub async fn an_abort_reaches_a_child_that_waits(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([asks(&["payer", "helper"])]))
        .agent("helper", ScriptedLlm::new([report().at_gate(&gate)]))
        .agent(
            "payer",
            ScriptedLlm::new([Reply::tool_call("pay", json!({"word": "rent"})), report()]),
        );
    let executor = harness.boot(World::new(llm)).await;
    let payer = helper("payer").tool(pay()).build().unwrap();
    let agent =
        teller().sub_agent(&payer).sub_agent(&helper("helper").build().unwrap()).build().unwrap();
    let handle = begin(&*executor, &agent, "Pay.").await;
    gate.reached().await;
    let waits = async {
        while executor.pending_calls(&S.into()).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    within(waits).await;
    handle.abort(None).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Aborted);
    for call in ["1.0", "1.1"] {
        let below = executor.handle(&child(call)).await.unwrap();
        assert_eq!(within(below.result()).await.unwrap().status, RunStatus::Aborted);
    }
    assert!(executor.pending_calls(&S.into()).await.unwrap().is_empty());
}

/// A session that waits for its child is aborted without a live run, and the child with it.
pub async fn a_waiting_family_can_be_aborted(harness: &impl RuntimeHarness) {
    let payer = helper("helper").tool(pay()).build().unwrap();
    let agent = boss(&payer);
    let llm = scripts(
        ScriptedLlm::new([asks(&["helper"])]),
        ScriptedLlm::new([Reply::tool_call("pay", json!({"word": "rent"}))]),
    );
    let executor = harness.boot(World::new(llm).registered(&agent)).await;
    run(&*executor, &agent, "Pay.").await;
    executor.abort(&S.into(), Some("never mind".to_owned())).await.unwrap();
    assert_eq!(status(&fold(harness).await), RunStatus::Aborted);
    assert_eq!(status(&fold_of(harness, &child("1.0")).await), RunStatus::Aborted);
    let late = executor.submit_tool_result(&S.into(), Submission::approve("1.0")).await;
    assert_eq!(late.unwrap_err().code(), ErrorCode::AnswerToAborted);
}

/// Two levels down somebody waits; both above wait with it, and all go on together.
pub async fn a_grandchild_that_waits_lets_the_whole_family_wait(harness: &impl RuntimeHarness) {
    let llm = RoutingScriptedLlm::new()
        .agent("teller", ScriptedLlm::new([asks(&["helper"]), Reply::text("Paid.")]))
        .agent("helper", ScriptedLlm::new([asks(&["payer"]), report()]))
        .agent(
            "payer",
            ScriptedLlm::new([Reply::tool_call("pay", json!({"word": "rent"})), report()]),
        );
    let payer = helper("payer").tool(pay()).build().unwrap();
    let agent = boss(&helper("helper").sub_agent(&payer).build().unwrap());
    let executor = harness.boot(World::new(llm)).await;
    let handle = begin(&*executor, &agent, "Pay.").await;
    let result = within(handle.result()).await.unwrap();
    assert_eq!(result.status, RunStatus::SuspendedAwaitingChildren);
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        tool_arg 0 subagent__helper
        args {"message":"find out"}
        subagent_start 1.0 helper
        [helper] run_started
        [helper] tool_arg 0 subagent__payer
        [helper] args {"message":"find out"}
        [helper] subagent_start 1.0 payer
        [payer] run_started
        [payer] tool_arg 0 pay
        [payer] args {"word":"rent"}
        [payer] approval_request 1.0 pay {"word":"rent"}
        [payer] run_suspended 1.0
        [helper] run_suspended
        run_suspended
    "#]],
    )
    .await;
    let pending = executor.pending_calls(&S.into()).await.unwrap();
    assert_eq!(pending[0].session.as_str(), "story-sub-1.0-sub-1.0");
    let between = fold_of(harness, &child("1.0")).await;
    assert_eq!(status(&between), RunStatus::SuspendedAwaitingChildren);
    assert_eq!(fold_of(harness, &pending[0].session).await.root().as_str(), S);
    let yes = Submission::approve(pending[0].reference().to_string().as_str());
    executor.submit_tool_result(&S.into(), yes).await.unwrap();
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(fold(harness).await.tree_usage().steps, 6);
}

/// Writes down what it is told of sub-agents.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, cx: &HookContext, line: impl Into<String>) {
        self.0.lock().unwrap().push(format!("{}: {}", cx.agent, line.into()));
    }
}

#[async_trait]
impl AgentHooks for Diary {
    async fn on_agent_complete(&self, cx: &HookContext, output: Option<&Json>) -> HookResult {
        self.note(cx, format!("complete {}", output.map_or("", Json::text)));
        Ok(())
    }
    async fn before_sub_agent(&self, cx: &HookContext, call: SubAgentView<'_>) -> HookResult {
        self.note(cx, format!("before {} for {}", call.agent, call.call));
        if call.agent == "odd" { Err(ToolError::new("not that one")) } else { Ok(()) }
    }
    async fn after_sub_agent(
        &self,
        cx: &HookContext,
        call: SubAgentView<'_>,
        outcome: &ToolOutcome,
    ) -> HookResult {
        let success = matches!(outcome, ToolOutcome::Success(_));
        self.note(cx, format!("after {} success={success}", call.agent));
        Ok(())
    }
    async fn after_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        self.note(cx, format!("after_tool {}", call.tool));
        Ok(())
    }
}

/// The caller's hooks are told of the child's steps too; one that fails keeps the child from being
/// begun.
pub async fn hooks_of_the_caller_wrap_those_of_the_child(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let llm = scripts(
        ScriptedLlm::new([asks(&["helper", "odd"]), Reply::text("It is so.")]),
        ScriptedLlm::new([Reply::tool_call("shout", json!({"word": "hm"})), report()]),
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = teller()
        .sub_agent(&helper("helper").build().unwrap())
        .sub_agent(&helper("odd").build().unwrap())
        .hooks(diary.clone())
        .build()
        .unwrap();
    let result = run(&*executor, &agent, "Is it so?").await;
    assert_eq!(result.status, RunStatus::Completed);
    expect![[r#"
        teller: before helper for 1.0
        teller: before odd for 1.1
        helper: after_tool shout
        helper: complete {"answer":"yes","score":1}
        teller: after helper success=true
        teller: complete "It is so."
    "#]]
    .assert_eq(&(diary.0.lock().unwrap().join("\n") + "\n"));
    let told = normalise::transcript(fold(harness).await.transcript());
    assert!(told.contains("not begun: not that one"), "{told}");
}

/// The caller is shown what its child does while it does it.
pub async fn what_a_child_shows_is_seen_live(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let llm = scripts(
        ScriptedLlm::new([asks(&["helper"]), Reply::text("It is so.")]),
        ScriptedLlm::new([
            Reply::tool_call("shout", json!({"word": "hm"})),
            report().at_gate(&gate),
        ]),
    );
    let executor = harness.boot(World::new(llm)).await;
    let agent = boss(&helper("helper").build().unwrap());
    let handle = begin(&*executor, &agent, "Is it so?").await;
    until_shown(&handle, |kind| matches!(kind, ChunkKind::ToolEnd { .. })).await;
    gate.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
}

/// If it were not, a process that dies now would leave a child behind of which nobody knows, and the
/// model, asked again, might give the call's id to another call.
pub async fn a_reply_is_on_record_before_its_children_begin(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let store =
        FaultStore::new(harness.store()).on("child_started", Fault::HoldBefore(gate.clone()));
    let llm = scripts(
        ScriptedLlm::new([asks(&["helper"]), Reply::text("It is so.")]),
        ScriptedLlm::new([report()]),
    );
    let executor = harness.boot(World::new(llm).on(store).per_step()).await;
    let agent = boss(&helper("helper").build().unwrap());
    let handle = begin(&*executor, &agent, "Is it so?").await;
    gate.reached().await;
    assert!(fold(harness).await.open_step().is_some(), "the child began before the reply");
    gate.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
}

/// The dead owner said of the child last that it lives: whoever goes on with the parent waits for
/// that lease too, and not forever.
pub async fn a_child_whose_lease_outlives_its_parents_is_gone_on_with(
    harness: &impl RuntimeHarness,
) {
    let gate = Gate::new();
    let llm = || {
        scripts(
            ScriptedLlm::new([asks(&["helper"]), Reply::text("It is so.")]),
            ScriptedLlm::new([report().at_gate(&gate)]),
        )
    };
    let agent = boss(&helper("helper").build().unwrap());
    let executor = harness.boot(World::new(llm()).short_lease()).await;
    begin(&*executor, &agent, "Is it so?").await;
    gate.reached().await;
    harness.kill().await;
    gate.open();
    let run = fold_of(harness, &child("1.0")).await.last_run().unwrap().id.clone();
    let longer = std::time::Duration::from_millis(900);
    harness.store().renew(&child("1.0"), &run, longer).await.unwrap();
    let executor = harness.boot(World::new(llm()).short_lease()).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
}
