//! Scenarios for hooks: their order, refusals, and changes.

use std::time::Duration;

use async_trait::async_trait;
use expect_test::expect;
use helix_agents_core::error::ErrorCode;
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::hooks::{
    AgentHooks, HookContext, HookDecision, HookResult, LlmChange, ToolCallView,
};
use helix_agents_core::json::Json;
use helix_agents_core::llm::LlmConfig;
use helix_agents_core::session::Submission;
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use helix_agents_test::{Gate, Reply, ScriptedLlm};
use serde_json::json;

use super::support::{
    Diary, Notes, Report, Word, asks, check_log, check_stream, completes, end, fold, held, helper,
    note, options, report, resume, run, scripts, shout, start_run, submit, teller, until_past,
    until_shown, word,
};
use super::{RuntimeHarness, World};

/// A hook that fails where it cannot refuse.
struct FailingHooks;

#[async_trait]
impl AgentHooks for FailingHooks {
    async fn on_agent_start(&self, _: &HookContext) -> HookResult {
        Err(ToolError::new("a failure that is contained"))
    }
}

/// The hooks of a tool call run in the order `before_tool`, `on_state_change`, `on_message`,
/// `after_tool`. Hooks of the agent run before those of the run. A failing hook does not stop the
/// others.
pub async fn hooks_run_in_their_order(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let agent = teller()
        .state::<Notes>()
        .tool(note())
        .output::<Report>()
        .tool_concurrency(1)
        .hooks(FailingHooks)
        .hooks(diary.named("agent"))
        .build()
        .unwrap();
    let call = |word: &str| ("note", json!({"word": word}));
    let replies = [
        Reply::calls([call("a"), call("b")]).with_text("hm").with_thinking("well"),
        Reply::finish(json!({"answer": "x", "score": 1})),
    ];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let handle = executor
        .execute(agent.erased(), "go".into(), options().hooks(diary.named("run")))
        .await
        .unwrap();
    end(&handle).await;
    expect![[r#"
        agent's in teller: on_agent_start turn 1
        run's in teller: on_agent_start turn 1
        agent's in teller: on_message user
        run's in teller: on_message user
        agent's in teller: before_llm_call step 1
        run's in teller: before_llm_call step 1
        agent's in teller: on_thinking "well" complete=false
        run's in teller: on_thinking "well" complete=false
        agent's in teller: on_text_delta "hm"
        run's in teller: on_text_delta "hm"
        agent's in teller: after_llm_call
        run's in teller: after_llm_call
        agent's in teller: on_message assistant
        run's in teller: on_message assistant
        agent's in teller: before_tool 1.0 note
        run's in teller: before_tool 1.0 note
        agent's in teller: before_tool 1.1 note
        run's in teller: before_tool 1.1 note
        agent's in teller: on_state_change [{"op":"add","path":"/notes/-","value":"a"},{"op":"add","path":"/last","value":"a"}]
        run's in teller: on_state_change [{"op":"add","path":"/notes/-","value":"a"},{"op":"add","path":"/last","value":"a"}]
        agent's in teller: on_message tool 1.0
        run's in teller: on_message tool 1.0
        agent's in teller: after_tool 1.0 note success=true
        run's in teller: after_tool 1.0 note success=true
        agent's in teller: on_state_change [{"op":"add","path":"/notes/-","value":"b"},{"op":"add","path":"/last","value":"b"}]
        run's in teller: on_state_change [{"op":"add","path":"/notes/-","value":"b"},{"op":"add","path":"/last","value":"b"}]
        agent's in teller: on_message tool 1.1
        run's in teller: on_message tool 1.1
        agent's in teller: after_tool 1.1 note success=true
        run's in teller: after_tool 1.1 note success=true
        agent's in teller: before_llm_call step 2
        run's in teller: before_llm_call step 2
        agent's in teller: after_llm_call
        run's in teller: after_llm_call
        agent's in teller: on_message assistant
        run's in teller: on_message assistant
        agent's in teller: on_message tool 2.0
        run's in teller: on_message tool 2.0
        agent's in teller: on_agent_complete {"answer":"x","score":1}
        run's in teller: on_agent_complete {"answer":"x","score":1}
    "#]].assert_eq(&diary.all());
}

/// The hooks of concurrent tools run in call order. If the second tool ends first, its hooks still
/// run second.
pub async fn hooks_receive_results_in_call_order(harness: &impl RuntimeHarness) {
    let (diary, gate) = (Diary::default(), Gate::new());
    let agent = teller()
        .state::<Notes>()
        .tool(held("slow", &gate))
        .tool(note())
        .hooks(diary.clone())
        .build()
        .unwrap();
    let calls = [("slow", word("a")), ("note", word("b"))];
    let llm = ScriptedLlm::new([Reply::calls(calls), Reply::text("done")]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    gate.reached().await;
    until_shown(&handle, |kind| matches!(kind, ChunkKind::ToolEnd { .. })).await;
    assert_eq!(diary.lines_of(&["after_tool"]), "", "hooks wait for the slow one");
    gate.open();
    completes(&handle).await;
    expect![[r#"
        teller: on_message user
        teller: on_message assistant
        teller: on_message tool 1.0
        teller: after_tool 1.0 slow success=true
        teller: on_state_change [{"op":"add","path":"/notes/-","value":"b"},{"op":"add","path":"/last","value":"b"}]
        teller: on_message tool 1.1
        teller: after_tool 1.1 note success=true
        teller: on_message assistant
    "#]]
    .assert_eq(&diary.lines_of(&["on_state_change", "on_message", "after_tool"]));
}

/// A hook that refuses some words and model calls, and changes others.
struct Censor;

#[async_trait]
impl AgentHooks for Censor {
    async fn before_tool(
        &self,
        _: &HookContext,
        call: ToolCallView<'_>,
    ) -> HookResult<HookDecision<Json>> {
        Ok(match call.input.text() {
            text if text.contains("secret") => HookDecision::Refuse("not that word".to_owned()),
            text if text.contains("damn") => HookDecision::Change(json!({"word": "darn"}).into()),
            text if text.contains("odd") => HookDecision::Change(json!({"word": 7}).into()),
            text if text.contains("fail") => return Err(ToolError::new("the censor is ill")),
            _ => HookDecision::Continue,
        })
    }

    async fn before_llm_call(
        &self,
        cx: &HookContext,
        config: &LlmConfig,
    ) -> HookResult<HookDecision<LlmChange>> {
        if cx.step == 3 {
            return Ok(HookDecision::Refuse("that is enough".to_owned()));
        }
        let mut config = config.clone();
        config.temperature = Some(0.5);
        Ok(HookDecision::Change(LlmChange::new().prompt("Be nice.").config(config)))
    }
}

/// `before_tool` and `before_llm_call` can change and refuse calls. A `before_tool` hook that fails
/// refuses the call.
pub async fn a_hook_refuses_and_changes_calls(harness: &impl RuntimeHarness) {
    let agent = teller().tool(shout()).hooks(Censor).build().unwrap();
    let call = |word: &str| ("shout", json!({"word": word}));
    let llm = ScriptedLlm::new([
        Reply::calls([call("secret"), call("damn"), call("odd"), call("fail")]),
        Reply::calls([call("fine")]),
    ]);
    let executor = harness.boot(World::new(llm.clone())).await;
    let result = run(&*executor, &agent, "go").await;
    assert!(result.error.unwrap().is(ErrorCode::HookRefused));
    check_log(harness, &expect![[r#"
        session teller state=null
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 shout({"word":"secret"})
          call 1.1 shout({"word":"damn"})
          call 1.2 shout({"word":"odd"})
          call 1.3 shout({"word":"fail"})
          result 1.0 error tool_refused: not run: not that word
          result 1.1 "DARN"
          result 1.2 error tool_input_invalid: the arguments that a hook changed do not match the schema: at /word: 7 is not of type "string"
          result 1.3 error tool_refused: not run: the censor is ill
        step 1 closed
        step 2 reply ToolUse in=10 out=5
          call 2.0 shout({"word":"fine"})
          result 2.0 "FINE"
        step 2 closed
        step 3 reply error=hook_refused: a hook refused the model call: that is enough should_stop=true Error in=0 out=0
        step 3 closed
        end failed hook_refused: a hook refused the model call: that is enough
    "#]]).await;
    assert_eq!(llm.seen()[0].prompt, "Be nice.");
    assert_eq!(llm.seen()[0].config.temperature, Some(0.5));
}

/// A hook that increments a counter in the state wherever it can.
pub(super) struct Counter;

#[async_trait]
impl AgentHooks for Counter {
    async fn after_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        let known = cx.state::<Notes>()?.notes.len();
        cx.update_state(|state: &mut Notes| {
            state.notes.push(format!("{} saw {known}", call.call));
        })
    }

    async fn on_agent_complete(&self, cx: &HookContext, _: Option<&Json>) -> HookResult {
        cx.update_state(|state: &mut Notes| state.last = "complete".to_owned())
    }
}

/// A hook sees the state changes of the tools. The state change of the hook is appended together
/// with other events.
pub async fn a_hooks_state_change_rides_in_the_step(harness: &impl RuntimeHarness) {
    let agent = teller().state::<Notes>().tool(note()).hooks(Counter).build().unwrap();
    let replies = [Reply::tool_call("note", json!({"word": "a"})), Reply::text("done")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let handle = start_run(&*executor, &agent, "go").await;
    end(&handle).await;
    assert_eq!(
        **fold(harness).await.state(),
        json!({"notes": ["a", "1.0 saw 1"], "last": "complete"})
    );
    check_log(harness, &expect![[r#"
        session teller state={"notes":[],"last":""}
        run Execute
        user "go"
        step 1 reply ToolUse in=10 out=5
          call 1.0 note({"word":"a"})
          result 1.0 1 state=[{"op":"add","path":"/notes/-","value":"a"},{"op":"add","path":"/last","value":"a"}]
        step 1 closed
        state by after_tool [{"op":"add","path":"/notes/-","value":"1.0 saw 1"}]
        step 2 reply EndTurn in=10 out=5 "done"
        step 2 closed
        state by on_agent_complete [{"op":"add","path":"/last","value":"complete"}]
        end completed "done"
    "#]]).await;
    for append in harness.store().read_log(handle.session(), 0, 100).await.unwrap() {
        let text = String::from_utf8_lossy(&append.body);
        assert!(
            append.count > 1 || !text.contains("state_changed"),
            "in an append of its own: {text}"
        );
    }
}

/// A finish tool calls the same hooks as any other tool. The stream shows its progress, custom
/// chunks and state change.
pub async fn a_finish_tool_has_the_hooks_of_any_other_and_shows_what_it_does(
    harness: &impl RuntimeHarness,
) {
    let diary = Diary::default();
    let submit = Tool::function("submit", "Submits.", |input: Word, cx: ToolContext| async move {
        cx.progress("half way", Some(0.5));
        cx.emit("draft", &input.word)?;
        cx.update_state(|state: &mut Notes| state.last.clone_from(&input.word))?;
        Ok::<_, ToolError>(json!({"answer": input.word, "score": 1}))
    });
    let agent = teller()
        .state::<Notes>()
        .tool(submit.finish_with())
        .output::<Report>()
        .hooks(diary.clone())
        .build()
        .unwrap();
    let llm = ScriptedLlm::new([Reply::tool_call("submit", json!({"word": "x"}))]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = start_run(&*executor, &agent, "go").await;
    end(&handle).await;
    expect![[r#"
        teller: on_agent_start turn 1
        teller: on_message user
        teller: before_llm_call step 1
        teller: after_llm_call
        teller: on_message assistant
        teller: before_tool 1.0 submit
        teller: on_state_change [{"op":"add","path":"/last","value":"x"}]
        teller: on_message tool 1.0
        teller: after_tool 1.0 submit success=true
        teller: on_agent_complete {"answer":"x","score":1}
    "#]]
    .assert_eq(&diary.all());
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        tool_arg 0 submit
        args {"word":"x"}
        tool_start 1.0 submit {"word":"x"}
        progress 1.0 half way
        custom draft "x"
        tool_end 1.0 success=true {"answer":"x","score":1}
        state_patch [{"op":"add","path":"/last","value":"x"}]
        checkpoint
        output {"answer":"x","score":1}
        run_ended completed
    "#]],
    )
    .await;
}

/// `after_tool` runs for a call that failed and for a call that a hook refused.
pub async fn after_tool_runs_for_calls_that_failed_or_were_refused(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let agent = teller().tool(shout()).hooks(Censor).hooks(diary.clone()).build().unwrap();
    let call = |word: &str| ("shout", json!({"word": word}));
    let calls = [call(""), call("secret")];
    let llm = ScriptedLlm::new([Reply::calls(calls), Reply::text("done")]);
    let executor = harness.boot(World::new(llm)).await;
    run(&*executor, &agent, "go").await;
    expect![[r#"
        teller: after_tool 1.0 shout success=false tool_failed
        teller: after_tool 1.1 shout success=false tool_refused
    "#]]
    .assert_eq(&diary.lines_of(&["after_tool"]));
}

fn ask() -> Tool {
    Tool::client::<Word>("ask", "Asks a person.")
}

fn answer(call: &str) -> Submission {
    Submission::result(call, &word("blue")).unwrap()
}

/// The hooks for calls that wait for users, and for their results.
const ANSWERED: &[&str] = &[
    "on_agent_suspended",
    "on_agent_resumed",
    "before_tool",
    "on_state_change",
    "on_message",
    "after_tool",
];

/// `on_agent_suspended` and `on_agent_resumed` run when a run waits for answers and continues. The
/// hooks of answered calls have the usual order. A call that is not executed has no `before_tool`.
pub async fn hooks_run_for_a_suspension_and_for_the_answers(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let calls =
        [("note", word("a")), ("note", word("b")), ("ask", word("c")), ("shout", word("d"))];
    let script = ScriptedLlm::new([Reply::calls(calls), Reply::text("Done.")]);
    let agent = teller()
        .state::<Notes>()
        .tool(note().requires_approval())
        .tool(ask())
        .tool(shout())
        .hooks(diary.clone())
        .build()
        .unwrap();
    let executor = harness.boot(World::new(script)).await;
    run(&*executor, &agent, "go").await;
    submit(&*executor, Submission::approve("1.0")).await;
    submit(&*executor, Submission::deny("1.1", None)).await;
    submit(&*executor, answer("1.2")).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    completes(&handle).await;
    expect![[r#"
        teller: on_message user
        teller: on_message assistant
        teller: before_tool 1.3 shout
        teller: on_message tool 1.3
        teller: after_tool 1.3 shout success=true
        teller: on_agent_suspended ClientTool on 3 calls
        teller: on_agent_resumed ClientTool
        teller: before_tool 1.0 note
        teller: on_state_change [{"op":"add","path":"/notes/-","value":"a"},{"op":"add","path":"/last","value":"a"}]
        teller: on_message tool 1.0
        teller: after_tool 1.0 note success=true
        teller: on_message tool 1.1
        teller: after_tool 1.1 note success=false tool_denied
        teller: on_message tool 1.2
        teller: after_tool 1.2 ask success=true
        teller: on_message assistant
    "#]]
    .assert_eq(&diary.lines_of(ANSWERED));
}

/// The hooks of an approved call run when a resumed run executes the call. `after_tool` also runs
/// for a call that was not answered before its deadline.
pub async fn hooks_run_for_an_approved_call_and_for_an_unanswered_one(
    harness: &impl RuntimeHarness,
) {
    let diary = Diary::default();
    let calls = [("note", word("a")), ("ask", word("b"))];
    let script = ScriptedLlm::new([Reply::calls(calls), Reply::text("Done.")]);
    let agent = teller()
        .state::<Notes>()
        .tool(note().requires_approval())
        .tool(ask().deadline(Duration::from_millis(20)))
        .hooks(diary.clone())
        .build()
        .unwrap();
    let executor = harness.boot(World::new(script)).await;
    let deadline = run(&*executor, &agent, "go").await.suspended.unwrap().deadline().unwrap();
    submit(&*executor, Submission::approve("1.0")).await;
    until_past(harness, deadline).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    completes(&handle).await;
    expect![[r#"
        teller: on_message user
        teller: on_message assistant
        teller: on_agent_suspended ClientTool on 2 calls
        teller: on_agent_resumed ClientTool
        teller: before_tool 1.0 note
        teller: on_state_change [{"op":"add","path":"/notes/-","value":"a"},{"op":"add","path":"/last","value":"a"}]
        teller: on_message tool 1.0
        teller: after_tool 1.0 note success=true
        teller: on_message tool 1.1
        teller: after_tool 1.1 ask success=false tool_unanswered
        teller: on_message assistant
    "#]]
    .assert_eq(&diary.lines_of(ANSWERED));
}

/// If a child waits for a user, the suspension hooks of its parent are called for both the child
/// and the parent.
pub async fn hooks_run_when_a_child_is_suspended(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let helper = helper("helper").tool(ask()).build().unwrap();
    let llm = scripts(
        [asks(&["helper"]), Reply::text("So.")],
        [Reply::tool_call("ask", word("a")), report()],
    );
    let agent = teller().sub_agent(&helper).hooks(diary.clone()).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    run(&*executor, &agent, "go").await;
    submit(&*executor, answer("1.0")).await;
    completes(&resume(&*executor, &agent).await.unwrap()).await;
    expect![[r#"
        helper: on_agent_suspended ClientTool on 1 calls
        teller: on_agent_suspended AwaitingChildren on 0 calls
        teller: on_agent_resumed AwaitingChildren
        helper: on_agent_resumed ClientTool
    "#]]
    .assert_eq(&diary.lines_of(&["on_agent_suspended", "on_agent_resumed"]));
}
