//! The phases of a step: tools and sub-agents beside each other, then finish tools, then companions.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use expect_test::expect;
use helix_agents_core::agent::{Agent, AgentBuilder, CompanionMode};
use helix_agents_core::event::ToolOutcome;
use helix_agents_core::executor::ExecuteOptions;
use helix_agents_core::hooks::{AgentHooks, HookContext, HookResult, SubAgentView, ToolCallView};
use helix_agents_core::json::Json;
use helix_agents_core::session::{RunStatus, Submission};
use helix_agents_core::stream::ChunkKind;
use helix_agents_core::tool::{Tool, ToolContext, ToolError};
use serde_json::{Value, json};

use super::support::{
    Report, S, Word, begin, check_stream, chunks, resume, run, shout, teller, until_shown,
};
use super::{RuntimeHarness, World};
use crate::gate::{Gate, within};
use crate::scripted::{Reply, RoutingScriptedLlm, ScriptedLlm};

fn helper() -> AgentBuilder<(), Report> {
    Agent::builder("helper")
        .description("Finds things out.")
        .system_prompt("You find out.")
        .model("scripted")
        .output::<Report>()
}

/// A tool that hands its word in.
fn submit() -> Tool {
    Tool::function("submit", "Submits.", |input: Word, _: ToolContext| async move {
        Ok::<_, ToolError>(input.word)
    })
    .finish_with()
}

fn delegate() -> (&'static str, Value) {
    ("subagent__helper", json!({"message": "find out"}))
}

fn word(word: &str) -> Value {
    json!({ "word": word })
}

fn report() -> Reply {
    Reply::finish(json!({"answer": "yes", "score": 1}))
}

fn scripts(teller: ScriptedLlm, helper: ScriptedLlm) -> RoutingScriptedLlm {
    RoutingScriptedLlm::new().agent("teller", teller).agent("helper", helper)
}

/// Writes down what it is told of calls, of its own agent's only.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, cx: &HookContext, line: String) {
        if &*cx.agent == "teller" {
            self.0.lock().unwrap().push(line);
        }
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl AgentHooks for Diary {
    async fn after_tool(
        &self,
        cx: &HookContext,
        call: ToolCallView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        self.note(cx, format!("after_tool {}", call.tool));
        Ok(())
    }

    async fn after_sub_agent(
        &self,
        cx: &HookContext,
        call: SubAgentView<'_>,
        _: &ToolOutcome,
    ) -> HookResult {
        self.note(cx, format!("after_sub_agent {}", call.agent));
        Ok(())
    }
}

/// Both are under way at once; finish tools and the hooks of results wait for both.
pub async fn sub_agents_run_beside_the_tools_of_a_reply(harness: &impl RuntimeHarness) {
    let (tool, child) = (Gate::new(), Gate::new());
    let held = tool.clone();
    let hold = Tool::function("hold", "Holds.", move |input: Word, _: ToolContext| {
        let held = held.clone();
        async move {
            held.pass().await;
            Ok::<_, ToolError>(input.word)
        }
    });
    let calls = [("submit", word("end")), ("hold", word("a")), delegate()];
    let llm = scripts(
        ScriptedLlm::new([Reply::calls(calls)]),
        ScriptedLlm::new([report().at_gate(&child)]),
    );
    let diary = Diary::default();
    let agent = teller()
        .tool(hold)
        .tool(submit())
        .sub_agent(&helper().build().unwrap())
        .hooks(diary.clone())
        .build()
        .unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let handle = begin(&*executor, &agent, "go").await;
    tool.reached().await;
    child.reached().await;
    tool.open();
    until_shown(&handle, |kind| matches!(kind, ChunkKind::ToolEnd { .. })).await;
    assert!(diary.lines().is_empty(), "hooks wait for the child: {:?}", diary.lines());
    child.open();
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(diary.lines(), ["after_tool hold", "after_sub_agent helper", "after_tool submit"]);
}

/// It waits for people, and the turn with it; what was submitted beside it completes the turn.
pub async fn a_sub_agent_beside_a_finish_tool_comes_to_its_end_first(
    harness: &impl RuntimeHarness,
) {
    let llm = || {
        scripts(
            ScriptedLlm::new([Reply::calls([("submit", word("end")), delegate()])]),
            ScriptedLlm::new([Reply::tool_call("shout", word("hm")), report()]),
        )
    };
    let helper = helper().tool(shout().requires_approval()).build().unwrap();
    let agent = teller().tool(submit()).sub_agent(&helper).build().unwrap();
    let executor = harness.boot(World::new(llm())).await;
    let result = run(&*executor, &agent, "go").await;
    assert_eq!(result.status, RunStatus::SuspendedAwaitingChildren);
    executor.submit_tool_result(&S.into(), Submission::approve("1.0")).await.unwrap();
    harness.kill().await;
    let executor = harness.boot(World::new(llm())).await;
    let handle = resume(&*executor, &agent).await.unwrap();
    let result = within(handle.result()).await.unwrap();
    assert_eq!(result.output.unwrap().to_value(), json!("end"));
    check_stream(
        &handle,
        &expect![[r#"
        tool_start 1.0 shout {"word":"hm"}
        tool_end 1.0 success=true "HM"
        checkpoint
        checkpoint
        output {"answer":"yes","score":1}
        run_ended completed
        [teller] subagent_end 1.1 helper success=true
        [teller] tool_end 1.1 success=true {"answer":"yes","score":1}
        [teller] tool_start 1.0 submit {"word":"end"}
        [teller] tool_end 1.0 success=true "end"
        [teller] checkpoint
        [teller] output "end"
        [teller] run_ended completed
    "#]],
    )
    .await;
}

/// In call order, wherever in the reply they stand; they are no calls of tools to hooks.
pub async fn companion_calls_come_last(harness: &impl RuntimeHarness) {
    let diary = Diary::default();
    let calls = [
        ("companion__getChildStatus", json!({"name": "rex"})),
        ("companion__listChildren", json!({})),
        ("submit", word("end")),
        ("shout", word("hm")),
    ];
    let llm = scripts(ScriptedLlm::new([Reply::calls(calls)]), ScriptedLlm::new([report()]));
    let agent = teller()
        .tool(shout())
        .tool(submit())
        .companion(&helper().build().unwrap(), CompanionMode::Blocking)
        .tool_concurrency(1)
        .hooks(diary.clone())
        .build()
        .unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let handle = begin(&*executor, &agent, "go").await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    let chunks = chunks(&handle).await;
    let started = chunks.iter().filter_map(|it| match &it.chunk.kind {
        ChunkKind::ToolStart { tool, .. } => Some(&**tool),
        _ => None,
    });
    assert_eq!(
        started.collect::<Vec<_>>(),
        ["shout", "submit", "companion__getChildStatus", "companion__listChildren"]
    );
    assert_eq!(
        diary.lines(),
        [
            "after_tool shout",
            "after_tool submit",
            "after_tool companion__getChildStatus",
            "after_tool companion__listChildren",
        ]
    );
}

/// It completes like one that answers by `__finish__`, and its caller's stream goes on.
pub async fn a_sub_agent_may_end_by_a_finish_tool(harness: &impl RuntimeHarness) {
    let done = Completions::default();
    let hand_in =
        Tool::function("hand_in", "Hands in.", |input: Word, _: ToolContext| async move {
            Ok::<_, ToolError>(input)
        })
        .finish_with_transform(|word: Word| Ok(Report { answer: word.word, score: 2 }));
    let llm = scripts(
        ScriptedLlm::new([Reply::calls([delegate()]), Reply::text("It is so.")]),
        ScriptedLlm::new([Reply::tool_call("hand_in", word("x"))]),
    );
    let helper = helper().tool(hand_in).hooks(done.clone()).build().unwrap();
    let executor = harness.boot(World::new(llm)).await;
    let agent = teller().sub_agent(&helper).build().unwrap();
    let handle = begin(&*executor, &agent, "go").await;
    assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    assert_eq!(*done.0.lock().unwrap(), [r#"helper {"answer":"x","score":2}"#]);
    check_stream(
        &handle,
        &expect![[r#"
        run_started
        tool_arg 0 subagent__helper
        args {"message":"find out"}
        subagent_start 1.0 helper
        [helper] run_started
        [helper] tool_arg 0 hand_in
        [helper] args {"word":"x"}
        [helper] tool_start 1.0 hand_in {"word":"x"}
        [helper] tool_end 1.0 success=true {"word":"x"}
        [helper] checkpoint
        [helper] output {"answer":"x","score":2}
        [helper] run_ended completed
        subagent_end 1.0 helper success=true
        tool_end 1.0 success=true {"answer":"x","score":2}
        checkpoint
        text It is so.
        checkpoint
        output "It is so."
        run_ended completed
    "#]],
    )
    .await;
}

/// Writes down what was completed.
#[derive(Clone, Default)]
struct Completions(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl AgentHooks for Completions {
    async fn on_agent_complete(&self, cx: &HookContext, output: Option<&Json>) -> HookResult {
        let output = output.map_or("none", Json::text);
        self.0.lock().unwrap().push(format!("{} {output}", cx.agent));
        Ok(())
    }
}

/// By a finish tool, a native output, a condition, and text.
pub async fn every_way_to_complete_is_told_once(harness: &impl RuntimeHarness) {
    let done = Completions::default();
    let hand_in =
        Tool::function("hand_in", "Hands in.", |input: Word, _: ToolContext| async move {
            Ok::<_, ToolError>(input)
        })
        .finish_with_transform(|word: Word| Ok(Report { answer: word.word, score: 2 }));
    let world = |reply: Reply| World::new(ScriptedLlm::new([reply]));
    let turns: [(_, Reply); 4] = [
        (
            teller().tool(hand_in).output::<Report>().hooks(done.clone()).build().unwrap().erased(),
            Reply::tool_call("hand_in", word("x")),
        ),
        (
            teller()
                .output::<Report>()
                .native_output()
                .hooks(done.clone())
                .build()
                .unwrap()
                .erased(),
            Reply::output(json!({"answer": "n", "score": 3})),
        ),
        (
            teller()
                .tool(shout())
                .stop_when(|_| true)
                .hooks(done.clone())
                .build()
                .unwrap()
                .erased(),
            Reply::tool_call("shout", word("hm")),
        ),
        (teller().hooks(done.clone()).build().unwrap().erased(), Reply::text("text")),
    ];
    for (number, (agent, reply)) in turns.into_iter().enumerate() {
        let executor = harness.boot(world(reply)).await;
        let options = ExecuteOptions::default();
        let options = options.session(format!("story {number}"));
        let handle = executor.execute(agent, "go".into(), options).await.unwrap();
        assert_eq!(within(handle.result()).await.unwrap().status, RunStatus::Completed);
    }
    assert_eq!(
        *done.0.lock().unwrap(),
        [
            r#"teller {"answer":"x","score":2}"#,
            r#"teller {"answer":"n","score":3}"#,
            "teller none",
            r#"teller "text""#,
        ]
    );
}
