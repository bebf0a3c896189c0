//! Scenarios for sub-agents, which run in sessions below the session that called them.

use std::time::Duration;

use async_trait::async_trait;
use expect_test::expect;
use helix_agents_core::agent::{Agent, SubAgent, SubAgentInput};
use helix_agents_core::error::ErrorCode;
use helix_agents_core::executor::Input;
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult, SubAgentView};
use helix_agents_core::session::RunStatus;
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::ToolError;
use helix_agents_test::{Gate, Reply, ScriptedLlm};

use super::support::{
    Diary, Report, asks, check_log, check_stream, check_transcript, child, chunks, completes, fold,
    fold_of, helper, killed_at, log_of, report, resume, scripts, shout, start_run, status, teller,
    transcript_text, until_shown, word,
};
use super::{RuntimeHarness, World};
use crate::normalise;

/// Returns an agent whose helper calls `shout` before it reports.
fn boss() -> Agent {
    teller().sub_agent(&shouter()).build().unwrap()
}

fn shouter() -> Agent<Report> {
    helper("helper").tool(shout()).build().unwrap()
}

fn shouts() -> Reply {
    Reply::tool_call("shout", word("hm"))
}

/// The sub-agent's output is the result of the call. It has a log of its own, and its chunks are in the
/// parent's stream.
pub async fn a_sub_agent_answers_like_a_tool(harness: &impl RuntimeHarness) {
    let llm = scripts([asks(&["helper"]), Reply::text("It is so.")], [shouts(), report()]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &boss(), "Is it so?").await;
    completes(&handle).await;
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
    .assert_eq(&log_of(harness, &child("1.0")).await);
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

/// If a sub-agent fails or cannot be started, the model gets the error. The other sub-agents of the reply complete.
pub async fn a_sub_agent_that_fails_does_not_disturb_its_siblings(harness: &impl RuntimeHarness) {
    let calls = asks(&["helper", "broken", "odd", "nobody"]);
    let llm = scripts([calls, Reply::text("One did.")], [report()])
        .agent("broken", ScriptedLlm::new([Reply::fails(ErrorCode::ProviderRejected)]));
    let odd = SubAgent::new(&helper("odd").build().unwrap());
    let agent = teller()
        .sub_agent(&helper("helper").build().unwrap())
        .sub_agent(&helper("broken").build().unwrap())
        .sub_agent(odd.input(|_: SubAgentInput| Input::default()))
        .build()
        .unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "Is it so?").await;
    completes(&handle).await;
    let shown = normalise::stream(&chunks(&handle).await);
    assert!(shown.contains("tool_error 1.2 sub_agent_dispatch_failed"), "{shown}");
    check_transcript(
        harness,
        &expect![[r#"
            user "Is it so?"
            assistant None subagent__helper({"message":"find out"}) subagent__broken({"message":"find out"}) subagent__odd({"message":"find out"}) subagent__nobody({"message":"find out"})
            tool subagent__helper {"answer":"yes","score":1}
            tool subagent__broken {"error":"the sub-agent failed: as scripted"}
            tool subagent__odd {"error":"the sub-agent could not be started: the input has no message"}
            tool subagent__nobody {"error":"there is no tool `subagent__nobody`; the tools are: subagent__helper, subagent__broken, subagent__odd"}
            assistant Some("One did.")
        "#]],
    )
    .await;
}

/// A process crashes while a parent and its child are running. Another process continues both and repeats no recorded
/// work.
pub async fn a_restart_continues_a_child_where_it_stopped(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let world = || {
        let teller = [asks(&["helper"]), Reply::text("It is so.")];
        World::new(scripts(teller, [shouts(), report().at_gate(&gate)]))
    };
    killed_at(harness, world(), &boss(), &gate).await;
    let executor = harness.boot(world()).await;
    completes(&resume(&*executor, &boss()).await.unwrap()).await;
    let below = fold_of(harness, &child("1.0")).await;
    assert_eq!((status(&below), below.usage().tool_calls), (RunStatus::Completed, 1));
    assert_eq!(fold(harness).await.tree_usage().steps, 4);
}

/// After a crash, the lease of a child expires later than that of its parent. The process that continues the parent
/// waits for the child's lease and then continues the child.
pub async fn a_child_whose_lease_outlives_its_parents_is_continued(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let world = || {
        let teller = [asks(&["helper"]), Reply::text("It is so.")];
        World::new(scripts(teller, [report().at_gate(&gate)]))
    };
    killed_at(harness, world(), &boss(), &gate).await;
    let run = fold_of(harness, &child("1.0")).await.last_run().unwrap().id.clone();
    harness.store().renew(&child("1.0"), &run, Duration::from_millis(900)).await.unwrap();
    let executor = harness.boot(world()).await;
    completes(&resume(&*executor, &boss()).await.unwrap()).await;
}

/// The parent's stream shows the child's chunks while they are written.
pub async fn chunks_of_a_child_arrive_live(harness: &impl RuntimeHarness) {
    let gate = Gate::new();
    let teller = [asks(&["helper"]), Reply::text("It is so.")];
    let llm = scripts(teller, [shouts(), report().at_gate(&gate)]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &boss(), "Is it so?").await;
    until_shown(&handle, |kind| matches!(kind, ChunkKind::ToolEnd { .. })).await;
    gate.open();
    completes(&handle).await;
}

/// A hook that prevents the start of a child.
struct NotOdd;

#[async_trait]
impl AgentHooks for NotOdd {
    async fn before_sub_agent(&self, _: &HookContext, call: SubAgentView<'_>) -> HookResult {
        if call.agent == "odd" { Err(ToolError::new("not that one")) } else { Ok(()) }
    }
}

/// The parent's hooks are also called for the child's steps. A failing hook prevents the start of the child.
pub async fn hooks_of_the_caller_wrap_those_of_the_child(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let llm = scripts([asks(&["helper", "odd"]), Reply::text("It is so.")], [shouts(), report()]);
    let agent = teller()
        .sub_agent(&shouter())
        .sub_agent(&helper("odd").build().unwrap())
        .hooks(diary.clone())
        .hooks(NotOdd)
        .build()
        .unwrap();
    let executor = harness.boot(World::new(llm)).await;
    completes(&start_run(&*executor, &agent, "Is it so?").await).await;
    expect![[r#"
        teller: before_sub_agent 1.0 helper
        teller: before_sub_agent 1.1 odd
        helper: after_tool 1.0 shout success=true
        helper: on_agent_complete {"answer":"yes","score":1}
        teller: after_sub_agent 1.0 helper success=true
        teller: after_sub_agent 1.1 odd success=false tool_refused
        teller: on_agent_complete "It is so."
    "#]]
    .assert_eq(&diary.lines_of(&[
        "before_sub_agent",
        "after_sub_agent",
        "after_tool",
        "on_agent_complete",
    ]));
    let transcript = transcript_text(harness).await;
    assert!(
        transcript.contains("a hook refused to start the sub-agent: not that one"),
        "{transcript}"
    );
}
