//! Hooks: order, refusal, change.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use expect_test::expect;
use helix_agents_core::error::{ErrorCode, ErrorRecord};
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::hooks::{
    AgentHooks, Before, HookContext, HookResult, LlmChange, ToolCallView,
};
use helix_agents_core::json::Json;
use helix_agents_core::llm::{LlmConfig, LlmResponse};
use helix_agents_core::message::Message;
use helix_agents_core::state::Patch;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use serde_json::json;

use super::support::{
    Notes, Report, Word, begin, check_log, check_stream, fold, note, options, run, shout, teller,
};
use super::{RuntimeHarness, World};
use crate::gate::within;
use crate::scripted::{Reply, ScriptedLlm};

/// Writes down what it is told.
#[derive(Clone)]
struct Diary {
    name: &'static str,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Diary {
    fn note(&self, line: impl Into<String>) {
        self.lines.lock().unwrap().push(format!("{} {}", self.name, line.into()));
    }
}

#[async_trait]
impl AgentHooks for Diary {
    async fn on_agent_start(&self, cx: &HookContext) -> HookResult {
        self.note(format!("on_agent_start turn {}", cx.turn));
        Err(ToolError::new("a failure that is contained"))
    }
    async fn on_agent_complete(&self, _: &HookContext, output: Option<&Json>) -> HookResult {
        self.note(format!("on_agent_complete {}", output.map_or("none", Json::text)));
        Ok(())
    }
    async fn on_agent_fail(&self, _: &HookContext, error: &ErrorRecord) -> HookResult {
        self.note(format!("on_agent_fail {}", error.code));
        Ok(())
    }
    async fn before_llm_call(
        &self,
        cx: &HookContext,
        _: &LlmConfig,
    ) -> HookResult<Before<LlmChange>> {
        self.note(format!("before_llm_call step {}", cx.step));
        Ok(Before::Continue)
    }
    async fn after_llm_call(&self, _: &HookContext, _: &LlmResponse) -> HookResult {
        self.note("after_llm_call");
        Ok(())
    }
    async fn before_tool(
        &self,
        _: &HookContext,
        call: ToolCallView<'_>,
    ) -> HookResult<Before<Json>> {
        self.note(format!("before_tool {}", call.call));
        Ok(Before::Continue)
    }
    async fn after_tool(
        &self,
        _: &HookContext,
        call: ToolCallView<'_>,
        outcome: &ToolOutcome,
    ) -> HookResult {
        let success = matches!(outcome, ToolOutcome::Success(_));
        self.note(format!("after_tool {} success={success}", call.call));
        Ok(())
    }
    async fn on_message(&self, _: &HookContext, message: &Message) -> HookResult {
        let role = serde_json::to_value(message)?["role"].to_string();
        self.note(format!("on_message {role}"));
        Ok(())
    }
    async fn on_state_change(&self, _: &HookContext, patch: &Patch) -> HookResult {
        self.note(format!("on_state_change {}", serde_json::to_string(patch)?));
        Ok(())
    }
    fn on_thinking(&self, _: &HookContext, content: &str, complete: bool) {
        self.note(format!("on_thinking {content:?} complete={complete}"));
    }
    fn on_text_delta(&self, _: &HookContext, delta: &str) {
        self.note(format!("on_text_delta {delta:?}"));
    }
}

/// For every tool: before, execute, state, message, after; results in call order.
pub async fn hooks_run_in_their_order(harness: &impl RuntimeHarness) {
    let lines = Arc::default();
    let diary = |name| Diary { name, lines: Arc::clone(&lines) };
    let agent = teller()
        .state::<Notes>()
        .tool(note())
        .output::<Report>()
        .tool_concurrency(1)
        .hooks(diary("agent"))
        .build()
        .unwrap();
    let call = |word: &str| ("note", json!({"word": word}));
    let replies = [
        Reply::calls([call("a"), call("b")]).with_text("hm").with_thinking("well"),
        Reply::finish(json!({"answer": "x", "score": 1})),
    ];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let handle =
        executor.execute(agent.erased(), "go".into(), options().hooks(diary("run"))).await.unwrap();
    within(handle.result()).await.unwrap();
    let lines = lines.lock().unwrap().join("\n");
    expect![[r#"
        agent on_agent_start turn 1
        run on_agent_start turn 1
        agent on_message "user"
        run on_message "user"
        agent before_llm_call step 1
        run before_llm_call step 1
        agent on_thinking "well" complete=false
        run on_thinking "well" complete=false
        agent on_text_delta "hm"
        run on_text_delta "hm"
        agent after_llm_call
        run after_llm_call
        agent on_message "assistant"
        run on_message "assistant"
        agent before_tool 1.0
        run before_tool 1.0
        agent before_tool 1.1
        run before_tool 1.1
        agent on_state_change [{"op":"add","path":"/notes/-","value":"a"},{"op":"add","path":"/last","value":"a"}]
        run on_state_change [{"op":"add","path":"/notes/-","value":"a"},{"op":"add","path":"/last","value":"a"}]
        agent on_message "tool"
        run on_message "tool"
        agent after_tool 1.0 success=true
        run after_tool 1.0 success=true
        agent on_state_change [{"op":"add","path":"/notes/-","value":"b"},{"op":"add","path":"/last","value":"b"}]
        run on_state_change [{"op":"add","path":"/notes/-","value":"b"},{"op":"add","path":"/last","value":"b"}]
        agent on_message "tool"
        run on_message "tool"
        agent after_tool 1.1 success=true
        run after_tool 1.1 success=true
        agent before_llm_call step 2
        run before_llm_call step 2
        agent after_llm_call
        run after_llm_call
        agent on_message "assistant"
        run on_message "assistant"
        agent on_message "tool"
        run on_message "tool"
        agent on_agent_complete {"answer":"x","score":1}
        run on_agent_complete {"answer":"x","score":1}"#]].assert_eq(&lines);
}

/// Refuses words and model calls, and changes others.
struct Censor;

#[async_trait]
impl AgentHooks for Censor {
    async fn before_tool(
        &self,
        _: &HookContext,
        call: ToolCallView<'_>,
    ) -> HookResult<Before<Json>> {
        Ok(match call.input.text() {
            text if text.contains("secret") => Before::Refuse("not that word".to_owned()),
            text if text.contains("damn") => Before::Change(json!({"word": "darn"}).into()),
            text if text.contains("odd") => Before::Change(json!({"word": 7}).into()),
            text if text.contains("fail") => return Err(ToolError::new("the censor is ill")),
            _ => Before::Continue,
        })
    }

    async fn before_llm_call(
        &self,
        cx: &HookContext,
        config: &LlmConfig,
    ) -> HookResult<Before<LlmChange>> {
        if cx.step == 3 {
            return Ok(Before::Refuse("that is enough".to_owned()));
        }
        let config = LlmConfig { temperature: Some(0.5), ..config.clone() };
        let prompt = Some("Be nice.".to_owned());
        Ok(Before::Change(LlmChange { prompt, config: Some(config) }))
    }
}

/// `before_tool` and `before_llm_call` change and refuse; a failing one refuses.
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
          result 1.2 error tool_input_invalid: a hook's arguments do not fit: at /word: 7 is not of type "string"
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

/// Counts into the state from every hook that may.
struct Counter;

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

/// A hook sees what the tools did, and its change is in the same append.
pub async fn a_hooks_state_change_rides_in_the_step(harness: &impl RuntimeHarness) {
    let agent = teller().state::<Notes>().tool(note()).hooks(Counter).build().unwrap();
    let replies = [Reply::tool_call("note", json!({"word": "a"})), Reply::text("done")];
    let executor = harness.boot(World::new(ScriptedLlm::new(replies))).await;
    let handle = begin(&*executor, &agent, "go").await;
    within(handle.result()).await.unwrap();
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
    let appends = harness.store().read_log(handle.session(), 0, 100).await.unwrap();
    assert_eq!(appends.len(), 4, "start, reply, result, reply");
}

/// It is a tool, and runs before the output stands.
pub async fn a_finish_tool_has_the_hooks_of_any_other_and_shows_what_it_does(
    harness: &impl RuntimeHarness,
) {
    let lines = Arc::default();
    let diary = Diary { name: "agent", lines: Arc::clone(&lines) };
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
        .hooks(diary)
        .build()
        .unwrap();
    let llm = ScriptedLlm::new([Reply::tool_call("submit", json!({"word": "x"}))]);
    let executor = harness.boot(World::new(llm)).await;
    let handle = begin(&*executor, &agent, "go").await;
    within(handle.result()).await.unwrap();
    expect![[r#"
        agent on_agent_start turn 1
        agent on_message "user"
        agent before_llm_call step 1
        agent after_llm_call
        agent on_message "assistant"
        agent before_tool 1.0
        agent on_state_change [{"op":"add","path":"/last","value":"x"}]
        agent on_message "tool"
        agent after_tool 1.0 success=true
        agent on_agent_complete {"answer":"x","score":1}"#]]
    .assert_eq(&lines.lock().unwrap().join("\n"));
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

/// One that ran and failed, and one that a hook refused.
pub async fn after_tool_is_told_of_calls_that_failed_or_were_refused(
    harness: &impl RuntimeHarness,
) {
    let lines = Arc::default();
    let diary = Diary { name: "agent", lines: Arc::clone(&lines) };
    let agent = teller().tool(shout()).hooks(Censor).hooks(diary).build().unwrap();
    let call = |word: &str| ("shout", json!({"word": word}));
    let calls = [call(""), call("secret")];
    let llm = ScriptedLlm::new([Reply::calls(calls), Reply::text("done")]);
    let executor = harness.boot(World::new(llm)).await;
    run(&*executor, &agent, "go").await;
    let lines = lines.lock().unwrap();
    let after: Vec<_> = lines.iter().filter(|line| line.contains("after_tool")).collect();
    assert_eq!(after, ["agent after_tool 1.0 success=false", "agent after_tool 1.1 success=false"]);
}
